#include "plan/frameworks/defaults.h"

namespace rehearse {

namespace {

constexpr double kBucketElements = 512.0 * 1024 * 1024;

}  // namespace

// InternLM of July 2023. Gradients are kept and reduced in the training precision, in buckets of 2^29
// elements (configs/7B_sft.py, reduce_bucket_size). The rank that owns them copies them to fp32
// (owns_parameters()). Norms read fp32 copies and are recomputed in the backward pass (modeling_internlm.py,
// dropout_selective_checkpoint). Gate and up projection are a GEMM each. SwiGLU and Adam take a kernel for
// each operation (linear.py, FeedForward; torch.optim.AdamW). There is no sequence parallelism.
constinit const FrameworkTraits frameworks::internevo = {
    .framework = Framework::internevo,
    .name = "internevo",
    .project = "InternEvo",
    .about = "InternLM's InternEvo of July 2023: ZeRO-1 by owners that broadcast",
    .set_defaults =
        [](Plan& plan) {
          plan.sequence_parallel = plan.fused_activation = plan.fused_adam = false;
          plan.grad_reduce = wire_precision(plan);
          plan.bucket_bytes = kBucketElements * (is_mixed(plan) ? 2 : 4);
          if (is_mixed(plan)) plan.recipe = Recipe::sagemaker;
        },
    .max_zero = 1,
    .wide_norms = true,
    .splits_gate = true,
    .recomputes_norms = true,
    .owners_broadcast = true,
    .bucket_copy_bytes = 6,
    .allocator = {.records_streams = true},
};

}  // namespace rehearse
