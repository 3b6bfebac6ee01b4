#include "run/layer_choice.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "cost/layer_costs.h"

namespace rehearse {

namespace {

std::vector<std::vector<int>> likely_splits(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  return splits_by_cost(layer_costs(experiment.model, plan, experiment.cluster, experiment.profile), plan);
}

// The experiment as candidates are tried: one steady iteration along the longest path.
Experiment as_tried(Experiment experiment) {
  experiment.engine = Engine::reference;
  experiment.fold = Fold::replicas;
  experiment.conditions.iterations = 1;
  experiment.conditions.jitter = {};
  experiment.with_band = experiment.with_reserved = experiment.with_split = false;
  return experiment;
}

}  // namespace

std::vector<int> fastest_split(const Experiment& experiment) {
  std::vector<std::vector<int>> splits = likely_splits(experiment);
  const std::vector<int>& own = experiment.plan.layers_per_stage;
  if (!own.empty() && std::ranges::find(splits, own) == splits.end()) splits.push_back(own);
  if (splits.size() == 1) return splits.front();
  Experiment tried = as_tried(experiment);
  using Merit = std::tuple<bool, bool, double>;  // less is better
  std::optional<Merit> best;
  std::vector<int> fastest;
  for (const std::vector<int>& split : splits) {
    tried.plan.layers_per_stage = split;
    const Report report = run_iteration(tried).report;
    const MemoryVerdict verdict = memory_verdict(report);
    const Merit merit{!verdict.fits(), !verdict.leaves_headroom, report.step_time_s};
    if (best && merit >= *best) continue;
    best = merit;
    fastest = split;
  }
  return fastest;
}

std::vector<int> likely_split(const Experiment& experiment) {
  return likely_splits(experiment).front();
}

std::vector<int> any_split(const Plan& plan, const Model& model) {
  constexpr std::int64_t kMaxStages = 1 << 20;  // before the rules are checked
  std::vector<int> layers(
      static_cast<std::size_t>(std::min<std::int64_t>(std::int64_t{plan.pp} * plan.vpp, kMaxStages)), 0);
  layers.front() = static_cast<int>(model.layers);
  return layers;
}

}  // namespace rehearse
