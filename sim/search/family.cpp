#include "search/family.h"

#include <algorithm>

#include "memory/sizing.h"
#include "run/outside_allocator.h"
#include "schedule/orders.h"
#include "search/bounds.h"

namespace rehearse {

OpsKey::OpsKey(const Plan& plan)
    : ParallelOptions(plan),
      BatchOptions(plan),
      RecomputeOptions(plan),
      NumericsOptions(plan),
      KernelOptions(plan),
      StepOptions(plan),
      ExpertOptions(plan),
      LaunchOptions(plan),
      framework(plan.framework),
      is_v_shaped(rehearse::is_v_shaped(plan.schedule)),
      sharding(plan.zero >= 2 ? ShardingOptions(plan) : ShardingOptions()) {}

OrderKey::OrderKey(const Plan& plan)
    : OrderOptions(plan),
      pp(plan.pp),
      vpp(plan.vpp),
      pairs_passes(plan.pairs_passes()),
      microbatches(plan.microbatches()) {}

bool same_family(const Plan& plan, const Plan& other) {
  return plan.tp == other.tp && plan.cp == other.cp && plan.pp == other.pp && plan.dp == other.dp &&
         plan.ep == other.ep && plan.micro_batch == other.micro_batch;
}

const Family::Ops& Family::ops_of(const Plan& plan) {
  const OpsKey key(plan);
  const auto found = std::ranges::find(ops_, key, &Ops::key);
  if (found != ops_.end()) return *found;
  Ops& ops = ops_.emplace_back(Ops{key, {}, {}, {}});
  ops.work = make_work(experiment_.model, plan);
  ops.times = price(ops.work, plan, experiment_.cluster, experiment_.profile, kernels_).times.stages;
  ops.bytes = stage_bytes(ops.work);
  return ops;
}

const Family::Order& Family::order_of(const Plan& plan) {
  const Plan short_plan = shortened(plan);
  const OrderKey key(short_plan);
  const auto found = std::ranges::find(orders_, key, &Order::key);
  if (found != orders_.end()) return *found;
  return orders_.emplace_back(Order{key, make_order(short_plan)});
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
  // Copies to the host are ops of the full schedule only.
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
