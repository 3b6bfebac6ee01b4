#include <array>
#include <charconv>

#include "plan/frameworks/defaults.h"

namespace rehearse {

namespace {

constexpr std::array kVersions = {"0.7", "0.8", "0.9", "0.10", "0.11", "0.12", "0.13"};

// "0.12" means release 12 of the experts' code.
void set_version(Plan& plan, std::string_view version) {
  const std::string_view minor = version.substr(version.find('.') + 1);
  std::from_chars(minor.data(), minor.data() + minor.size(), plan.core_release);
}

// Megatron-LM's own defaults: no sequence parallelism, no overlap of gradients; loss, permutation and router
// in separate kernels; gradients clipped to 1 (megatron/training/arguments.py,
// core/transformer/transformer_config.py).
std::vector<OwnDefault> own_defaults(const Plan& plan, const Model& model) {
  std::vector<OwnDefault> found;
  const bool experts = model.experts.has_value();
  add_off<&Plan::sequence_parallel>("sequence_parallel", plan, plan.tp > 1 && plan.ep == 1, found);
  add_off<&Plan::overlap_grad_reduce>("overlap_grad_reduce", plan, plan.zero < 2 && plan.dp * plan.cp > 1,
                                      found);
  add_off<&Plan::fused_cross_entropy>("fused_cross_entropy", plan, true, found);
  add_off<&Plan::fused_permute>("fused_permute", plan, experts, found);
  add_off<&Plan::fused_router>("fused_router", plan, experts, found);
  add_clipping(plan, found);
  return found;
}

}  // namespace

// Gradients are accumulated in fp32 and reduced during the backward pass. Attention is fused. Tensor
// parallelism includes sequence parallelism.
constinit const FrameworkTraits frameworks::megatron_core = {
    .framework = Framework::megatron_core,
    .name = "megatron-core",
    .project = "Megatron core",
    .about = "Megatron-LM with Megatron core and Transformer Engine; the default",
    .versions = kVersions,
    .as_version = set_version,
    .set_defaults = [](Plan& plan) { plan.fused_accumulation = true; },
    .own_defaults = own_defaults,
    .trains_hybrids = true,
    .predicts_tokens = true,
    .fp8 = Fp8Library::transformer_engine,
    .splits_heads = true,
    // Transformer Engine's kernel has no factor for YaRN's longer wavelengths (Megatron core,
    // models/common/embeddings/rope_utils.py, mscale).
    .rope_fusion_lacks_yarn = true,
    .groups_experts = false,
    .fuses_loss_by_te = true,
    .recomputes_towers = false,  // unless --recompute-vision is given (examples/multimodal/model.py)
    .allocator = {.gather_buffers = 1},
    .model_group = ModelGroup::unsharded,
};

}  // namespace rehearse
