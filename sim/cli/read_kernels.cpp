#include "cli/read_kernels.h"

#include <utility>

#include "cli/by_name.h"
#include "model/bounds.h"

namespace rehearse {

void read_kernels(const JsonReader& json, Plan& plan) {
  plan.train_metrics = static_cast<int>(json.integer_or("train_metrics", 0, 0, 100));
  for (const auto& [key, field] : {std::pair{"sequence_parallel", &Plan::sequence_parallel},
                                   {"fused_attention", &Plan::fused_attention},
                                   {"fused_softmax", &Plan::fused_softmax},
                                   {"fused_cross_entropy", &Plan::fused_cross_entropy},
                                   {"fused_norm", &Plan::fused_norm},
                                   {"fused_rotary", &Plan::fused_rotary},
                                   {"fused_activation", &Plan::fused_activation},
                                   {"fused_permute", &Plan::fused_permute},
                                   {"fused_router", &Plan::fused_router},
                                   {"fused_experts", &Plan::fused_experts},
                                   {"fp8_output_proj", &Plan::fp8_output_proj},
                                   {"fp8_dot_product_attention", &Plan::fp8_attention},
                                   {"fused_accumulation", &Plan::fused_accumulation},
                                   {"fused_adam", &Plan::fused_adam},
                                   {"fused_step", &Plan::fused_step},
                                   {"scatter_gather", &Plan::scatter_gather},
                                   {"overlap_grad_reduce", &Plan::overlap_grad_reduce}})
    plan.*field = json.boolean_or(key, plan.*field);
  plan.bf16_first_layers = json.integer_or("bf16_first_layers", 0, 0, bounds::kLayers);
  plan.bf16_last_layers = json.integer_or("bf16_last_layers", 0, 0, bounds::kLayers);
  plan.loss_fusion = json.choice_or("cross_entropy_fusion_impl", LossFusion::native, by_name(kLossFusions));
  if (json.has("cuda_graph_modules"))
    plan.cuda_graph_modules =
        read_names(json, "cuda_graph_modules", by_name(kGraphModules), "is no module that CUDA graphs know");
  plan.cuda_graph = json.boolean_or("cuda_graph", !plan.cuda_graph_modules.empty());
}

}  // namespace rehearse
