// How much memory does each GPU of a plan need, found without running it, and how few GPUs would be enough?
#pragma once

#include <optional>
#include <vector>

#include "memory/sizing.h"
#include "run/iteration.h"

namespace rehearse {

// For each pipeline rank, as in the report of the run, but without the reserved memory.
std::vector<Footprint> footprints_of(const Experiment& experiment);

// fewest_gpus() on the experiment's cluster. Where nodes are mixed, on the nodes of pipeline rank `like`.
std::optional<FewestGpus> fewest_gpus_of(const Experiment& experiment, const Headroom& headroom,
                                         int like = 0);

}  // namespace rehearse
