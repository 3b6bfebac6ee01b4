// What lies on the GPUs of a plan, found without running it, and how few GPUs would hold it?
#pragma once

#include <optional>
#include <vector>

#include "memory/sizing.h"
#include "run/iteration.h"

namespace rehearse {

// Of each pipeline rank, as the report of the run has them, but without what the allocator reserves.
std::vector<Footprint> footprints_of(const Experiment& experiment);

// fewest_gpus() on the experiment's cluster. Where nodes are mixed: on those that pipeline rank `like` has.
std::optional<FewestGpus> fewest_gpus_of(const Experiment& experiment, const Headroom& headroom,
                                         int like = 0);

}  // namespace rehearse
