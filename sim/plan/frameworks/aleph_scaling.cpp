#include "plan/frameworks/defaults.h"

namespace rehearse {

// Aleph Alpha's Scaling (737f8558 of October 2024). Gradients are kept in the training precision. They are
// all-reduced in fp32 after the last backward pass, also with ZeRO-1 (core/optimizer/allreduce.py). Gate and
// up projection are a GEMM each, and reduce their input's gradient each (core/nn/mlp.py, linear/utils.py).
// Logits are gathered on every tensor-parallel rank, for a loss of whole rows
// (transformer/model/layers/lm_head.py, losses/cross_entropy.py). Full recompute includes embedding and head
// (parallel_module.py, EVERY_LAYER). Without FlashAttention there is a kernel for each operation. Stages have
// equal parameters (plan/layer_split.h; examples/transformer_example/config.yml). Nothing overlaps.
constinit const FrameworkTraits frameworks::aleph_scaling = {
    .framework = Framework::aleph_scaling,
    .name = "aleph-scaling",
    .project = "Scaling",
    .about = "Aleph Alpha's Scaling of October 2024",
    .set_defaults =
        [](Plan& plan) {
          plan.sequence_parallel = false;
          plan.fused_softmax = plan.fused_cross_entropy = plan.fused_norm = plan.fused_rotary = false;
          plan.fused_activation = plan.fused_adam = false;
          plan.overlap_grad_reduce = plan.tp_backward_overlap = false;
          plan.bucket_bytes = kDeepSpeedBucketElements * 4;
          if (is_mixed(plan)) plan.recipe = Recipe::zero;
        },
    .layer_split = LayerSplit::by_parameters,
    .max_zero = 1,
    .keeps_gathered = true,
    .splits_gate = true,
    .keeps_views = true,
    .gathers_logits = true,
    .attention_waits_for_host = true,
    .recomputes_ends = true,
    .all_reduces_sharded = true,
    .bucket_copy_bytes = 6,
};

}  // namespace rehearse
