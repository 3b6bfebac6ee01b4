#include "schedule/passes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plan/sharding.h"
#include "schedule/implied_waits.h"
#include "schedule/orders.h"

namespace rehearse {

namespace {

GatherTime gather_time(const Plan& plan) {
  if (plan.zero == 3 && plan.reshard_after_forward) return GatherTime::each_use;
  if (plan.zero == 3) return drops_after_backward(plan) ? GatherTime::microbatch : GatherTime::iteration;
  return gathers_by_unit(plan) ? GatherTime::first_forward : GatherTime::after_step;
}

// Only compute ops and messages, with the implied waits. Without overlap, compute waits for all earlier
// messages, as in add_transfers().
Schedule pipeline_ops(const Schedule& order, bool overlap) {
  Schedule kept{order.pp, order.stages, order.microbatches, {}};
  for (const RankOps& ops : order.ranks) {
    RankOps& list = kept.ranks.emplace_back();
    ImpliedWaits implied;
    std::array<std::int32_t, kStreams> none, unwaited;
    none.fill(-1);
    unwaited = none;
    for (const Op& op : ops.ops()) {
      if (op.kind > OpKind::recv_backward) continue;
      std::array<std::int32_t, kStreams> waits = none;
      if (!overlap && is_compute(op.kind)) waits = std::exchange(unwaited, none);
      for (const std::int32_t wait : implied.of(op)) {
        std::int32_t& latest = waits[static_cast<std::size_t>(list[static_cast<std::size_t>(wait)].stream)];
        latest = std::max(latest, wait);
      }
      const std::int32_t index = list.add(op, waits);
      implied.note(op, index);
      if (is_send(op.kind) || is_receive(op.kind)) unwaited[static_cast<std::size_t>(op.stream)] = index;
    }
  }
  return kept;
}

bool has_messages(const Schedule& order) {
  for (const RankOps& ops : order.ranks)
    if (std::ranges::any_of(ops.ops(), [](const Op& op) { return is_send(op.kind) || is_receive(op.kind); }))
      return true;
  return false;
}

Schedule add_other_passes(Schedule schedule, const Plan& plan, const GradientSync& sync) {
  if (plan.pairs_passes()) schedule = pair_passes(schedule);
  if (plan.offload == Offload::activations) schedule = add_activation_offload(schedule);
  schedule = add_gradient_sync(schedule, sync);
  if (shard_size(plan) == 1 && expert_shard_size(plan) == 1) return schedule;
  return add_parameter_gather(
      schedule, {gather_time(plan), sync.gathers_ahead ? plan.prefetch : 0, sync.buckets, sync.alone});
}

}  // namespace

Schedule with_transfers(const Schedule& order, const Plan& plan) {
  const Schedule kept = pipeline_ops(order, plan.overlap_p2p);
  return has_messages(kept) ? kept : add_transfers(kept, plan.overlap_p2p);
}

Schedule complete_schedule(const Plan& plan, const GradientSync& sync) {
  return add_other_passes(add_transfers(make_order(plan), plan.overlap_p2p), plan, sync);
}

Schedule complete_schedule(const Schedule& order, const Plan& plan, const GradientSync& sync) {
  return add_other_passes(with_transfers(order, plan), plan, sync);
}

}  // namespace rehearse
