// How much of the time that a rank computes do the others on parts of its GPU compute too?
#pragma once

#include "result/timeline.h"
#include "run/iteration.h"

namespace rehearse {

// Of `others` ranks the mean share that is in a pass while a rank is in one, 0 to 1. `ranks`: how many there
// are, where the timeline has one for several that fare alike.
double concurrent_compute(const Timeline& timeline, const Schedule& schedule, int ranks, double others);

// Whether the ranks share a GPU, and the profile tells what that costs them.
bool shares_gpu(const Experiment& experiment);

}  // namespace rehearse
