#include "cost/layer_costs.h"

#include <algorithm>

#include "cost/price.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

// Each block of a tower, the embedding, every layer and the head become stages of their own.
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
  Plan looping = plan;  // there are more pieces than a V schedule has stages
  looping.schedule = ScheduleName::interleaved;
  const Work pieces = in_pieces(model, looping);
  const std::vector<StageTimes> times = price(pieces, looping, cluster, profile).times.stages;
  // Ahead of the layers come a tower and the embedding, which stay on the first stage. MTP layers and the
  // head follow them, and stay on the last stage.
  LayerCosts costs;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const StageTimes& piece = times[i];
    const double seconds =
        piece.forward.total() + piece.backward_input.total() + piece.backward_weight.total();
    const BlockRole role = pieces.blocks[static_cast<std::size_t>(pieces.parts[i].front().block)].role;
    if (role == BlockRole::layer) {
      costs.layers.push_back(seconds);
    } else {
      (costs.layers.empty() ? costs.first : costs.last) += seconds;
    }
  }
  return costs;
}

std::vector<std::vector<int>> splits_by_cost(const LayerCosts& costs, const Plan& plan) {
  const auto layers = static_cast<int>(costs.layers.size());
  const std::vector<int> by_stage = balanced_split(costs, plan.stages());
  const std::vector<int> filled = filled_split(layers, plan.stages());  // the even split where one exists
  const auto over_ranks = [&](const std::vector<int>& split) {
    return balanced_over_ranks(costs, split, [&](int stage) { return pipeline_rank_of(stage, plan); });
  };
  std::vector<std::vector<int>> splits;
  for (const std::vector<int>& split : {over_ranks(filled), over_ranks(by_stage), by_stage, filled})
    if (std::ranges::find(splits, split) == splits.end()) splits.push_back(split);
  return splits;
}

}  // namespace rehearse
