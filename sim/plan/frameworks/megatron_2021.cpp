#include "plan/frameworks/defaults.h"

namespace rehearse {

// Megatron-LM of Narayanan et al. 2021 (release 2.x): gradients of fp16 models are kept and reduced in fp16
// after the backward pass, and copied to fp32 for the optimizer, whose every pass is a kernel of its own;
// attention and the loss in separate kernels; neither sequence parallelism nor collectives beside the weight
// gradients.
const FrameworkTraits kMegatron2021 = {
    .framework = Framework::megatron_2021,
    .name = "megatron-2021",
    .project = "Megatron-LM of 2021",
    .about = "Megatron-LM 2.x: fp16, unfused attention, no sequence parallelism (Narayanan et al. 2021)",
    .set_defaults =
        [](Plan& plan) {
          plan.sequence_parallel = false;
          plan.fused_attention = plan.fused_cross_entropy = false;
          plan.overlap_grad_reduce = false;
          plan.tp_backward_overlap = false;
          plan.fused_step = false;
          plan.scatter_gather = true;
          if (plan.precision != Precision::fp16) return;
          plan.recipe = Recipe::sagemaker;
          plan.grad_reduce = Precision::fp16;
        },
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
