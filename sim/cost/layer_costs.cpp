#include "cost/layer_costs.h"

#include "cost/price.h"
#include "plan/balance.h"

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

std::vector<int> layers_by_cost(const Model& model, const Plan& plan, const Cluster& cluster,
                                const Profile& profile) {
  Plan looping = plan;  // pieces are more stages than a V has
  looping.schedule = ScheduleName::interleaved;
  std::vector<double> seconds;
  for (const StageTimes& piece : price(in_pieces(model, looping), looping, cluster, profile).times.stages)
    seconds.push_back(piece.forward.total() + piece.backward_input.total() + piece.backward_weight.total());
  const std::vector<double> layers(seconds.begin() + 1, seconds.end() - 1);
  return balanced_split(layers, seconds.front(), seconds.back(), plan.stages());
}

}  // namespace rehearse
