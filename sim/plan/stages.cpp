#include "plan/stages.h"

namespace rehearse {

std::vector<Stage> split_layers(const Model& model, const Plan& plan) {
  std::vector<Stage> stages(static_cast<std::size_t>(plan.stages()));
  std::int64_t next = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].first_layer = next;
    stages[s].layers =
        plan.layers_per_stage.empty() ? model.layers / plan.stages() : plan.layers_per_stage[s];
    next += stages[s].layers;
  }
  stages.front().embedding = true;
  stages.back().head = true;
  return stages;
}

}  // namespace rehearse
