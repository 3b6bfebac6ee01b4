#include "cost/layer_costs.h"

#include <algorithm>
#include <numeric>

#include "cost/price.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

// Embedding, every layer and head as a stage of its own.
Work in_pieces(const Model& model, Plan plan) {
  plan.layers_per_stage.assign(static_cast<std::size_t>(plan.stages()), 0);
  plan.layers_per_stage.front() = static_cast<int>(model.layers);
  Work work = make_work(model, plan);
  std::vector<std::vector<Repeated>> pieces;
  for (const auto& stage : work.parts)
    for (const Repeated& part : stage)
      for (std::int64_t i = 0; i < part.repeats; ++i) pieces.push_back({{part.block, 1}});
  work.parts = std::move(pieces);
  work.arrival = {};
  return work;
}

}  // namespace

LayerCosts layer_costs(const Model& model, const Plan& plan, const Cluster& cluster, const Profile& profile) {
  Plan looping = plan;  // pieces are more stages than a V has
  looping.schedule = ScheduleName::interleaved;
  std::vector<double> seconds;
  for (const StageTimes& piece : price(in_pieces(model, looping), looping, cluster, profile).times.stages)
    seconds.push_back(piece.forward.total() + piece.backward_input.total() + piece.backward_weight.total());
  // Behind the layers: modules of multi-token prediction and the head, which stay on the last stage.
  const auto behind = seconds.begin() + 1 + model.layers;
  return {{seconds.begin() + 1, behind}, seconds.front(), std::accumulate(behind, seconds.end(), 0.0)};
}

std::vector<std::vector<int>> splits_by_cost(const LayerCosts& costs, const Plan& plan) {
  const auto layers = static_cast<int>(costs.layers.size());
  const std::vector<int> by_stage = balanced_split(costs, plan.stages());
  const std::vector<int> filled = filled_split(layers, plan.stages());  // the even one where there is one
  const auto over_ranks = [&](const std::vector<int>& split) {
    return balanced_over_ranks(costs, split, [&](int stage) { return pipeline_rank_of(stage, plan); });
  };
  std::vector<std::vector<int>> splits;
  for (const std::vector<int>& split : {over_ranks(filled), over_ranks(by_stage), by_stage, filled})
    if (std::ranges::find(splits, split) == splits.end()) splits.push_back(split);
  return splits;
}

}  // namespace rehearse
