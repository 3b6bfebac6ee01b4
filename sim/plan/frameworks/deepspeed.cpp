#include "plan/frameworks/defaults.h"

namespace rehearse {

namespace {

void set_deepspeed(Plan& plan) {
  plan.scatter_gather = true;
  plan.grad_reduce = wire_precision(plan);
  plan.bucket_bytes = kDeepSpeedBucketElements * (is_mixed(plan) ? 2 : 4);
  if (is_mixed(plan)) plan.recipe = Recipe::zero;
}

void set_deepspeed_2021(Plan& plan) {
  plan.fused_attention = plan.fused_cross_entropy = false;
  set_deepspeed(plan);
}

// Gradients are reduced after the backward pass below ZeRO-3 (runtime/zero/config.py, overlap_comm_valid).
// Here, ZeRO-2 always overlaps.
std::vector<OwnDefault> own_defaults_of_deepspeed(const Plan& plan, const Model&) {
  std::vector<OwnDefault> found;
  add_off<&Plan::overlap_grad_reduce>("overlap_grad_reduce", plan, plan.zero < 2 && plan.dp > 1, found);
  return found;
}

constexpr AllocatorUse kAllocator = {.records_streams = true, .waits_before_forward = true};

}  // namespace

// Gradients are kept and reduced in the training precision, in buckets of kDeepSpeedBucketElements. From
// ZeRO-2 on they are reduced after every microbatch.
constinit const FrameworkTraits frameworks::deepspeed = {
    .framework = Framework::deepspeed,
    .name = "deepspeed",
    .project = "DeepSpeed",
    .about = "DeepSpeed's engine around a Megatron model",
    .set_defaults = set_deepspeed,
    .own_defaults = own_defaults_of_deepspeed,
    .late_state = LateState::of_deepspeed,
    .allocator = kAllocator,
};

// DeepSpeed of spring 2021. ZeRO-3 issues a collective for each weight. The model is of those days: attention
// and loss in separate kernels (DeepSpeedExamples, Megatron-LM-v1.1.5-ZeRO3).
constinit const FrameworkTraits frameworks::deepspeed_2021 = {
    .framework = Framework::deepspeed_2021,
    .name = "deepspeed-2021",
    .project = "DeepSpeed of 2021",
    .about = "DeepSpeed of spring 2021: ZeRO-3 with a collective for each weight, unfused attention",
    .set_defaults = set_deepspeed_2021,
    .rearranges_heads = true,
    .gathers_lists = true,
    .late_state = LateState::of_deepspeed,
    .allocator = kAllocator,
    .is_of_2021 = true,
};

}  // namespace rehearse
