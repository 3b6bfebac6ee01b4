#include "schedule/passes.h"

#include "plan/sharding.h"
#include "schedule/orders.h"

namespace rehearse {

namespace {

GatherTime gather_time(const Plan& plan) {
  if (plan.zero == 3) return plan.reshard_after_forward ? GatherTime::each_use : GatherTime::iteration;
  return plan.overlap_param_gather ? GatherTime::first_forward : GatherTime::after_step;
}

}  // namespace

Schedule complete_schedule(const Plan& plan, const GradientSync& sync) {
  Schedule schedule = add_transfers(make_order(plan), plan.overlap_p2p);
  if (plan.offload == Offload::activations) schedule = add_activation_offload(schedule);
  schedule = add_gradient_sync(schedule, sync);
  if (shard_size(plan) == 1 && expert_shard_size(plan) == 1) return schedule;
  return add_parameter_gather(schedule, {gather_time(plan), plan.prefetch, sync.buckets});
}

}  // namespace rehearse
