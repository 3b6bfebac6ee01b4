// What is added to a compute-only schedule: each pass takes a schedule and returns a fuller one.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace rehearse {

// SEND and RECV of activations and gradients between stages on different ranks. Messages enter all lists in
// one global order, so that they cannot deadlock even on a single queue. Without `overlap`, a compute op also
// waits for every message that its rank issued before it.
Schedule add_transfers(const Schedule& schedule, bool overlap);

// REDUCE_GRAD for each stage of each rank, then STEP after every reduction.
// Without `overlap`: one REDUCE_GRAD a stage, issued and started after the rank's last backward.
// With it: the last backward of stage s is split into buckets[s] parts, and REDUCE_GRAD part i waits for part
// i of it. `replicas` == 1 adds no REDUCE_GRAD. `tied` adds REDUCE_TIED on the ranks of the first and the
// last stage (pp > 1).
struct GradientSync {
  bool overlap = true;
  bool tied = false;
  int replicas = 1;
  std::vector<int> buckets;  // by stage, each >= 1
};
Schedule add_gradient_sync(const Schedule& schedule, const GradientSync& sync);

// order -> transfers -> gradient sync, as the plan says.
Schedule complete_schedule(const Plan& plan, const GradientSync& sync);

}  // namespace rehearse
