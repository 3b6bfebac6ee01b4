#include "memory/sizing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/schedules.h"
#include "schedule/orders.h"

namespace rehearse {

namespace {

// Schedules with a fixed pattern reach their peak number of live microbatches after a few rounds of pp,
// unless they hold all microbatches at once. So this many rounds are enough to find the peak.
constexpr std::int64_t kRounds = 6;
// Orders that a generator seeks have no such pattern. They reach their peak while the pipeline fills
// (tested).
constexpr std::int64_t kSought = 256;

// Gradients of GPipe begin when all forwards have ended. Each microbatch adds the same bytes.
constexpr std::int64_t kFewOfGpipe = 4;

Plan with_microbatches(Plan plan, std::int64_t microbatches) {
  plan.global_batch = std::min(plan.global_batch, microbatches * plan.micro_batch * plan.dp);
  return plan;
}

std::vector<RankMemory> gpipe_memory(const Plan& plan, const Work& work) {
  const std::vector<StageBytes> bytes = stage_bytes(work);
  const auto of = [&](std::int64_t microbatches) {
    return activation_memory(make_order(with_microbatches(plan, microbatches)), plan, work, bytes);
  };
  std::vector<RankMemory> ranks = of(kFewOfGpipe + 1);
  const std::vector<RankMemory> fewer = of(kFewOfGpipe);
  const auto further = static_cast<double>(plan.microbatches() - kFewOfGpipe - 1);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (double RankMemory::*const grows : {&RankMemory::activations_bytes, &RankMemory::logits_bytes,
                                            &RankMemory::left_bytes, &RankMemory::working_bytes})
      ranks[r].*grows += further * (ranks[r].*grows - fewer[r].*grows);
  return ranks;
}

// One replica has room for fewer expert-parallel ranks. Tensor parallelism of experts stays as it was: equal
// to that of the other layers, or not.
void fit_experts(Plan& plan, const Plan& like) {
  plan.etp = like.etp == like.tp ? plan.tp : std::min(like.etp, plan.tp);
  const auto divides = [&](int ep) { return like.ep % ep == 0 && plan.tp * plan.cp % (ep * plan.etp) == 0; };
  while (plan.ep > 1 && !divides(plan.ep)) --plan.ep;
  if (plan.ep > 1) return;
  plan.dispatcher = Dispatcher::all_to_all;
  plan.dispatcher_sms = 0;
}

std::vector<Plan> candidates(const Model& model, const Plan& like, const SizingLimits& limits) {
  std::vector<Plan> plans;
  for (int tp = 1; tp <= limits.gpus_per_node; ++tp) {
    if (limits.gpus_per_node % tp != 0) continue;
    for (int pp = 1; pp <= model.layers; ++pp) {
      Plan plan = like;
      plan.tp = tp;
      plan.pp = pp;
      plan.dp = 1;
      if (model.experts) fit_experts(plan, like);
      if (pp != like.pp) plan.layers_per_stage.clear();
      if (pp == 1) {
        plan.vpp = 1;
        plan.schedule = ScheduleName::one_f_one_b;
      }
      const bool there = limits.most_gpus == 0 || plan.gpus() <= limits.most_gpus;
      if (there && broken_rules(plan, model, plan.gpus()).empty()) plans.push_back(plan);
    }
  }
  std::stable_sort(plans.begin(), plans.end(),
                   [](const Plan& a, const Plan& b) { return a.gpus() < b.gpus(); });
  return plans;
}

Footprint fullest_gpu(const Model& model, const Plan& plan, const SizingLimits& limits) {
  const Work work = make_work(model, plan);
  const auto outside = limits.outside ? limits.outside(plan, work) : std::vector<OutsideAllocator>();
  const auto ranks = order_memory(plan, work, limits.workspace_bytes);
  return fullest(footprints(ranks, outside, limits.gpu_memory_bytes));
}

}  // namespace

Plan shortened(Plan plan) {
  if (plan.schedule == ScheduleName::gpipe) return plan;
  const std::int64_t group = std::max(plan.pp, plan.microbatch_group), all = plan.microbatches();
  std::int64_t enough = kRounds * group;
  if (traits(plan.schedule).is_sought) enough = std::max(enough, kSought);
  if (plan.microbatch_group > 0 && all > enough) enough += (all - enough) % plan.microbatch_group;
  return with_microbatches(std::move(plan), enough);
}

std::vector<RankMemory> order_memory(const Plan& plan, const Work& work, double workspace_bytes) {
  if (plan.schedule != ScheduleName::gpipe || plan.microbatches() <= kFewOfGpipe + 1)
    return rank_memory(make_order(shortened(plan)), plan, work, workspace_bytes);
  std::vector<RankMemory> ranks = gpipe_memory(plan, work);
  for (RankMemory& rank : ranks) add_state(rank, plan, work, workspace_bytes);
  return ranks;
}

std::optional<FewestGpus> fewest_gpus(const Model& model, const Plan& plan, const SizingLimits& limits) {
  std::optional<FewestGpus> best;
  for (const Plan& candidate : candidates(model, plan, limits)) {
    if (best && candidate.gpus() > best->plan.gpus()) break;
    const Footprint gpu = fullest_gpu(model, candidate, limits);
    const bool held = gpu.room_bytes() >= limits.headroom.of(gpu.capacity_bytes);
    if (!held || (best && gpu.needed_bytes() >= best->fullest.needed_bytes())) continue;
    best = FewestGpus{candidate, gpu};
  }
  return best;
}

double rule_of_thumb_gpus(double parameters, double gpu_memory_bytes) {
  return parameters * 18 * 1.25 / nominal_memory_bytes(gpu_memory_bytes);
}

double nominal_memory_bytes(double gpu_memory_bytes) {
  return std::ceil(gpu_memory_bytes / (1024.0 * 1024 * 1024) - 1e-9) * 1e9;
}

}  // namespace rehearse
