// While a rank computes, how much of the time do the other ranks on its GPU compute too?
#pragma once

#include "result/timeline.h"
#include "run/iteration.h"

namespace rehearse {

// The mean share of `others` ranks that are in a pass while a rank is in one, 0 to 1. `ranks`: number of
// ranks, where the timeline has one for several equal ranks.
double concurrent_compute(const Timeline& timeline, const Schedule& schedule, int ranks, double others);

// Whether the ranks share a GPU, and the profile has the slowdown that this causes.
bool shares_gpu(const Experiment& experiment);

}  // namespace rehearse
