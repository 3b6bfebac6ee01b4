// Which change makes a plan fit that does not?
#pragma once

#include <string>

#include "scenario/flags.h"
#include "scenario/scenario.h"

namespace rehearse {

// "it fits with --recompute full --zero 1". Otherwise the fewest GPUs that such a plan needs with its
// degrees, or that none was found. Changes are tried on the same GPUs, the mildest first: ZeRO, recompute,
// smaller microbatches, more model parallelism.
std::string way_to_fit(const ScenarioSource& source, const Scenario& scenario);

}  // namespace rehearse
