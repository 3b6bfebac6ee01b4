// What would make a plan fit that does not?
#pragma once

#include <string>

#include "scenario/flags.h"
#include "scenario/scenario.h"

namespace rehearse {

// "it fits with --recompute full --zero 1", else the fewest GPUs that a plan like it needs and its degrees,
// or that none was found. Tried on the same GPUs, the mildest first: ZeRO, recompute, smaller microbatches,
// more model parallelism.
std::string way_to_fit(const ScenarioSource& source, const Scenario& scenario);

}  // namespace rehearse
