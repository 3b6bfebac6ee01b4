#include "cost/price.h"

#include <algorithm>

#include "cost/kernel_times.h"
#include "cost/lists.h"
#include "cost/offload.h"
#include "cost/pricing.h"
#include "plan/owners.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "plan/weights.h"

namespace rehearse {

namespace {

// Seconds of the optimizer step by pipeline rank, for the rank that updates most elements.
std::vector<TimeParts> step_times(const Work& work, const Plan& plan, const Cluster& cluster,
                                  Pricing& pricing) {
  std::vector<double> shards(static_cast<std::size_t>(plan.pp), 0);
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    shards[static_cast<std::size_t>(pipeline_rank_of(stage, plan))] +=
        stepped_dense(work, plan, stage) + stepped_experts(work, plan, stage);
  std::vector<TimeParts> steps;
  for (const double shard : shards) {
    const bool at_host = plan.offload == Offload::optimizer;
    double& seconds = steps.emplace_back().optimizer;
    if (at_host) seconds = cpu_step_s(cluster, plan, shard);
    Block scratch;
    for (const Kernel& kernel :
         at_host ? clipping_kernels(shard, plan, scratch) : optimizer_kernels(shard, plan, scratch))
      seconds += pricing.time_of(scratch, kernel).seconds;
  }
  if (!exchanges_lists(plan)) return steps;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)])
      steps[static_cast<std::size_t>(pipeline_rank_of(stage, plan))].optimizer +=
          static_cast<double>(part.repeats) *
          lists_apart_s(shard_size(plan), weights_of(work.blocks[static_cast<std::size_t>(part.block)]).kept);
  return steps;
}

// Prices the stages. Stages that run the same blocks on the same messages are priced once.
void price_stages(const Work& work, Pricing& pricing, Prices& prices) {
  struct Priced {
    int stage;
    StageTimes times;
    StageTransfers transfers;
    double priced_s, extrapolated_s, unmeasured_s, launch_bound_s;
  };
  const auto are_symmetric = [&work](int a, int b) {
    return work.parts[static_cast<std::size_t>(a)] == work.parts[static_cast<std::size_t>(b)] &&
           work.receives_activation(a) == work.receives_activation(b) &&
           work.receives_gradient(a) == work.receives_gradient(b);
  };
  std::vector<Priced> known;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage) {
    auto like = std::find_if(known.begin(), known.end(),
                             [&](const Priced& other) { return are_symmetric(other.stage, stage); });
    if (like == known.end()) {
      pricing.priced_s = pricing.extrapolated_s = pricing.unmeasured_s = pricing.launch_bound_s = 0;
      StageTransfers transfers;
      const StageTimes times = pricing.stage(work, stage, transfers);
      known.push_back({stage, times, transfers, pricing.priced_s, pricing.extrapolated_s,
                       pricing.unmeasured_s, pricing.launch_bound_s});
      like = std::prev(known.end());
    }
    prices.times.stages.push_back(like->times);
    prices.transfers.push_back(like->transfers);
    prices.priced_s += like->priced_s;
    prices.extrapolated_s += like->extrapolated_s;
    prices.unmeasured_s += like->unmeasured_s;
    prices.launch_bound_s += like->launch_bound_s;
  }
}

}  // namespace

Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile,
             KernelTimes& times) {
  Pricing pricing(plan, cluster, profile, times);
  Prices prices;
  price_stages(work, pricing, prices);
  prices.slowest_gpu = pricing.on_slowest;
  prices.times.step = step_times(work, plan, cluster, pricing);
  return prices;
}

std::vector<TimeParts> price_steps(const Work& work, const Plan& plan, const Cluster& cluster,
                                   const Profile& profile, KernelTimes& times) {
  Pricing pricing(plan, cluster, profile, times);
  return step_times(work, plan, cluster, pricing);
}

Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile) {
  KernelTimes times(profile, cluster.gpu, to_string(plan.precision));
  return price(work, plan, cluster, profile, times);
}

}  // namespace rehearse
