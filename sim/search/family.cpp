#include "search/family.h"

#include <algorithm>

#include "result/memory/sizing.h"
#include "run/outside_allocator.h"
#include "schedule/orders.h"
#include "search/bounds.h"

namespace rehearse {

namespace {

// Without what neither kernels nor their prices read: when ops run, how state is divided and when it moves.
// Of the schedule they read whether the last stage lies on the first rank (tied embeddings). From ZeRO-2 on
// microbatches may reduce gradients and gather weights, whose copies and sums prices count.
Plan without_schedule_and_sharding(Plan plan) {
  const Plan none;
  plan.schedule = is_v_shaped(plan.schedule) ? ScheduleName::zb_v : none.schedule;
  plan.overlap_p2p = none.overlap_p2p;
  plan.overlap_grad_reduce = none.overlap_grad_reduce;
  plan.overlap_param_gather = none.overlap_param_gather;
  plan.bucket_bytes = none.bucket_bytes;
  plan.microbatch_group = none.microbatch_group;
  if (plan.zero >= 2) return plan;
  plan.reshard_after_forward = none.reshard_after_forward;
  plan.reduce_each_microbatch = none.reduce_each_microbatch;
  plan.zero = none.zero;
  plan.zero_shard = none.zero_shard;
  plan.prefetch = none.prefetch;
  return plan;
}

// What an order of compute ops hangs on.
Plan order_alone(const Plan& plan) {
  Plan order;
  order.schedule = plan.schedule;
  order.pp = plan.pp;
  order.vpp = plan.vpp;
  order.microbatch_group = plan.microbatch_group;
  if (plan.pairs_passes()) {
    order.overlap_experts = true;
    order.ep = plan.ep;
  }
  order.global_batch = plan.microbatches();
  return order;
}

}  // namespace

bool same_family(const Plan& plan, const Plan& other) {
  return plan.tp == other.tp && plan.cp == other.cp && plan.pp == other.pp && plan.dp == other.dp &&
         plan.ep == other.ep && plan.micro_batch == other.micro_batch;
}

const Family::Ops& Family::ops_of(const Plan& plan) {
  const Plan key = without_schedule_and_sharding(plan);
  const auto found = std::ranges::find(ops_, key, &Ops::plan);
  if (found != ops_.end()) return *found;
  Ops& ops = ops_.emplace_back();
  ops.plan = key;
  ops.work = make_work(experiment_.model, plan);
  ops.times = price(ops.work, plan, experiment_.cluster, experiment_.profile, kernels_).times.stages;
  ops.bytes = stage_bytes(ops.work);
  return ops;
}

const Family::Order& Family::order_of(const Plan& plan) {
  const Plan key = order_alone(shortened(plan));
  const auto found = std::ranges::find(orders_, key, &Order::plan);
  if (found != orders_.end()) return *found;
  return orders_.emplace_back(Order{key, make_order(key)});
}

const Family::Activations& Family::activations_of(const Ops& ops, const Plan& plan) {
  const Order& order = order_of(plan);
  const auto found = std::ranges::find_if(
      activations_, [&](const Activations& known) { return known.ops == &ops && known.order == &order; });
  if (found != activations_.end()) return *found;
  return activations_.emplace_back(
      Activations{&ops, &order, activation_memory(order.schedule, plan, ops.work, ops.bytes)});
}

const std::vector<OutsideAllocator>& Family::outside_of(const Ops& ops, const Plan& plan) {
  const std::tuple sharding(plan.zero, plan.zero_shard, plan.bucket_bytes);
  const auto found = std::ranges::find_if(
      outside_, [&](const Outside& known) { return known.ops == &ops && known.sharding == sharding; });
  if (found != outside_.end()) return found->ranks;
  return outside_.emplace_back(Outside{&ops, sharding, outside_allocator(experiment_, plan, ops.work)}).ranks;
}

PlanBounds Family::bounds(const Plan& plan) {
  const Ops& ops = ops_of(plan);
  const Cluster& cluster = experiment_.cluster;
  PlanBounds bounds;
  const OpTimes times = {ops.times, price_steps(ops.work, plan, cluster, experiment_.profile, kernels_)};
  bounds.least_s = least_step_time(plan, times);
  const double workspace = gemm_workspace_bytes(cluster.gpu.peak_flops.contains("fp8"));
  // Copies to the host stand in the full schedule only.
  std::vector<RankMemory> ranks =
      plan.offload == Offload::activations
          ? activation_memory(prepare(experiment_).schedule, plan, ops.work, ops.bytes)
          : activations_of(ops, plan).ranks;
  for (RankMemory& rank : ranks) add_state(rank, plan, ops.work, workspace);
  Footprint gpu = fullest(footprints(ranks, {}, cluster.gpu.memory_bytes));
  if (gpu.fits()) gpu = fullest(footprints(ranks, outside_of(ops, plan), cluster.gpu.memory_bytes));
  bounds.fits = gpu.fits();
  bounds.leaves_headroom = gpu.room_bytes() >= experiment_.headroom.of(gpu.capacity_bytes);
  bounds.needed_bytes = gpu.needed_bytes();
  return bounds;
}

}  // namespace rehearse
