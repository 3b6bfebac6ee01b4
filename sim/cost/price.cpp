#include "cost/price.h"

#include "cost/collectives.h"
#include "cost/kernel_times.h"
#include "plan/ranks.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

constexpr std::array<Axis, 5> kAxes = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};

// Where a kernel's seconds are booked.
double& part_of(TimeParts& parts, const Kernel& kernel, bool recompute) {
  if (const auto* collective = std::get_if<Collective>(&kernel.what)) {
    if (collective->axis == Axis::cp) return parts.cp;
    return collective->axis == Axis::ep ? parts.ep : parts.tp;
  }
  return recompute ? parts.recompute : parts.compute;
}

// Adds up stages; counts what it booked and how much of that was extrapolated.
class Pricing {
 public:
  Pricing(const Plan& plan, const Cluster& cluster, const Profile& profile, KernelTimes& times)
      : cluster_(cluster), profile_(profile), times_(times) {
    const RankGrid grid(plan);
    for (const Axis axis : kAxes) {
      groups_[static_cast<std::size_t>(axis)] = group_shape(cluster, grid.group(0, axis));
    }
  }

  StageTimes stage(const Work& work, const std::vector<Repeated>& parts) {
    StageTimes stage;
    for (const Repeated& part : parts) {
      const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
      const auto repeats = static_cast<double>(part.repeats);
      stage.forward += list(block, block.forward, repeats, false);
      stage.backward_input += list(block, block.recompute, repeats, true);
      stage.backward_input += list(block, block.backward_input, repeats, false);
      stage.backward_weight += list(block, block.backward_weight, repeats, false);
    }
    return stage;
  }

  Estimate time_of(const Block& block, const Kernel& kernel) {
    if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) return times_.gemm(*gemm);
    if (const auto* attention = std::get_if<Attention>(&kernel.what)) return times_.attention(*attention);
    if (const auto* kind = std::get_if<Pointwise>(&kernel.what)) {
      return times_.pointwise(*kind, block.bytes_moved(kernel));
    }
    const auto& collective = std::get<Collective>(kernel.what);
    const CommunicationTime time = collective_time(profile_, cluster_, collective.op, collective.bytes,
                                                   groups_[static_cast<std::size_t>(collective.axis)]);
    return {time.total(), time.extrapolated};
  }

  double priced_s = 0;
  double extrapolated_s = 0;

 private:
  TimeParts list(const Block& block, const std::vector<Kernel>& kernels, double repeats, bool recompute) {
    TimeParts parts;
    for (const Kernel& kernel : kernels) {
      const Estimate estimate = time_of(block, kernel);
      const double seconds = estimate.seconds * repeats;
      part_of(parts, kernel, recompute) += seconds;
      priced_s += seconds;
      if (estimate.extrapolated) extrapolated_s += seconds;
    }
    return parts;
  }

  const Cluster& cluster_;
  const Profile& profile_;
  KernelTimes& times_;
  std::array<GroupShape, 5> groups_;  // of rank 0, by axis
};

// Seconds of the optimizer step, by pipeline rank.
std::vector<TimeParts> step_times(const Work& work, const Plan& plan, Pricing& pricing) {
  std::vector<double> parameters(static_cast<std::size_t>(plan.pp), 0);
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    parameters[static_cast<std::size_t>(pipeline_rank_of(stage, plan))] += work.parameters(stage);
  std::vector<TimeParts> steps;
  for (const double count : parameters) {
    Block scratch;
    const Kernel adam = optimizer_kernel(count, plan, scratch);
    steps.emplace_back().optimizer = pricing.time_of(scratch, adam).seconds;
  }
  return steps;
}

}  // namespace

Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile,
             KernelTimes& times) {
  Pricing pricing(plan, cluster, profile, times);
  Prices prices;
  for (const auto& parts : work.parts) prices.times.stages.push_back(pricing.stage(work, parts));
  prices.times.step = step_times(work, plan, pricing);
  prices.priced_s = pricing.priced_s;
  prices.extrapolated_s = pricing.extrapolated_s;
  return prices;
}

Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile) {
  KernelTimes times(profile, cluster.gpu, to_string(plan.precision));
  return price(work, plan, cluster, profile, times);
}

}  // namespace rehearse
