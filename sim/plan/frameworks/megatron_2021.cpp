#include "plan/frameworks/defaults.h"

namespace rehearse {

namespace {

void set_megatron_2021(Plan& plan) {
  plan.sequence_parallel = false;
  plan.fused_attention = plan.fused_cross_entropy = false;
  plan.overlap_grad_reduce = false;
  plan.tp_backward_overlap = false;
  plan.fused_step = false;
  plan.scatter_gather = true;
  if (plan.precision != Precision::fp16) return;
  plan.recipe = Recipe::sagemaker;
  plan.grad_reduce = Precision::fp16;
}

}  // namespace

// Megatron-LM 2.x, as in Narayanan et al. 2021. Gradients of fp16 models are kept and reduced in fp16, after
// the backward pass. The optimizer copies them to fp32, and each of its passes is a kernel of its own.
// Attention and loss run in separate kernels. There is no sequence parallelism, and no collective beside
// weight gradients.
constinit const FrameworkTraits frameworks::megatron_2021 = {
    .framework = Framework::megatron_2021,
    .name = "megatron-2021",
    .project = "Megatron-LM of 2021",
    .about = "Megatron-LM 2.x: fp16, unfused attention, no sequence parallelism (Narayanan et al. 2021)",
    .set_defaults = set_megatron_2021,
    .expands_biases = true,
    .rearranges_heads = true,
    .softmax_of_2021 = true,
    .has_local_ddp = true,
    .late_state = LateState::of_deepspeed,
    // ZeRO comes with DeepSpeed's engine.
    .allocator = {.records_streams = true,
                  .waits_before_forward = true,
                  .after_pass = AllocatorUse::AfterPass::waits_unsharded},
    .is_of_2021 = true,
};

}  // namespace rehearse
