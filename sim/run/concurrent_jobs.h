// How long does a step take while another job uses the same fabric?
#pragma once

#include <vector>

#include "run/iteration.h"

namespace rehearse {

struct ConcurrentRun {
  Iteration own;
  std::vector<double> other_step_times_s;  // of the steps that the other job ran meanwhile
};

// One iteration of `own` on the first nodes of its placement, while `other` repeats its own on the next
// nodes. Nothing is folded, because the result depends on the fabric links that each rank crosses. InputError
// unless both have the same cluster with room for both, SimGrid's engine, nodes of one kind and durations
// that do not vary.
ConcurrentRun run_concurrently(Experiment own, Experiment other);

}  // namespace rehearse
