#include "plan/frameworks/defaults.h"

namespace rehearse {

// Gradients of 16 bits are added to fp32 ones. DistributedDataParallel reduces these during the backward
// pass. With ZeRO-1 there is no DistributedDataParallel, and they are all-reduced after that pass
// (trainer.py, make_ddp). Loss and SwiGLU take a kernel for each operation (models/llama.py, GLUActivation).
// Norms and rotary positions are FlashAttention's. Heads are copied before attention (plan/work/eager.h).
// Layers are split by cost (plan/layer_split.h).
constinit const FrameworkTraits frameworks::nanotron = {
    .framework = Framework::nanotron,
    .name = "nanotron",
    .project = "nanotron",
    .about = "Hugging Face's nanotron: fp32 accumulation, ZeRO-1 by all-reduce",
    .set_defaults =
        [](Plan& plan) {
          plan.fused_cross_entropy = plan.fused_activation = false;
          if (plan.precision == Precision::bf16) plan.recipe = Recipe::nanotron;
          if (plan.zero > 0) plan.overlap_grad_reduce = false;
        },
    .layer_split = LayerSplit::at_shares,
    .packs_heads = true,
    .all_reduces_sharded = true,
    .late_state = LateState::of_nanotron,
    .allocator = {.records_streams = true,
                  .after_pass = AllocatorUse::AfterPass::waits_in_pipelines,
                  .gather_buffers = 2,
                  .shares_queue_with_tp = true},
};

}  // namespace rehearse
