#include "export/hybrid_flags.h"

#include "plan/stages.h"

namespace rehearse {

std::string hybrid_layer_pattern(const Model& model, const Plan& plan) {
  std::string pattern;
  const bool is_even = plan.vpp == 1 && plan.layers_per_stage.empty();
  const std::vector<Stage> stages = split_layers(model, plan);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (s > 0 && !is_even) pattern += '|';
    pattern += model.pattern.substr(static_cast<std::size_t>(stages[s].first_layer),
                                    static_cast<std::size_t>(stages[s].layers));
  }
  for (std::int64_t module = 0; module < model.mtp_layers; ++module) pattern += '/' + model.mtp_pattern;
  return pattern;
}

}  // namespace rehearse
