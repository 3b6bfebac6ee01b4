#include "plan/framework.h"

namespace rehearse {

namespace {

constexpr double kInternEvoBucketElements = 512.0 * 1024 * 1024;

void as_aleph_scaling(Plan& plan) {
  plan.sequence_parallel = false;
  plan.fused_softmax = plan.fused_cross_entropy = plan.fused_norm = plan.fused_rotary = false;
  plan.fused_activation = plan.fused_adam = false;
  plan.overlap_grad_reduce = plan.tp_backward_overlap = false;
  plan.bucket_bytes = kDeepSpeedBucketElements * 4;
  if (plan.precision != Precision::fp32) plan.recipe = Recipe::zero;
}

void as_megatron_2021(Plan& plan) {
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

// On the wire gradients have the precision of the parameters; those of fp8 models are bf16.
Precision wire_precision(const Plan& plan) {
  return is_quantised(plan.precision) ? Precision::bf16 : plan.precision;
}

}  // namespace

void apply_framework(Plan& plan) {
  plan.sequence_parallel = plan.tp > 1;
  plan.reshard_after_forward = plan.reduce_each_microbatch = plan.pp == 1;
  plan.fused_accumulation = plan.framework == Framework::megatron_core;
  const bool mixed = plan.precision != Precision::fp32;
  switch (plan.framework) {
    case Framework::megatron_2021:
      return as_megatron_2021(plan);
    case Framework::megatron_core:
      return;
    case Framework::deepspeed_2021:
      plan.fused_attention = plan.fused_cross_entropy = false;
      [[fallthrough]];
    case Framework::deepspeed:
      plan.scatter_gather = true;
      plan.grad_reduce = wire_precision(plan);
      plan.bucket_bytes = kDeepSpeedBucketElements * (mixed ? 2 : 4);
      if (mixed) plan.recipe = Recipe::zero;
      return;
    case Framework::fsdp1:
    case Framework::fsdp:
      plan.grad_reduce = wire_precision(plan);
      [[fallthrough]];
    case Framework::torchtitan:
      plan.tp_backward_overlap = false;
      plan.recompute_early_stop = true;
      plan.fused_adam = plan.framework != Framework::fsdp1;
      if (mixed) plan.recipe = Recipe::fsdp;
      return;
    case Framework::nanotron:
      plan.fused_cross_entropy = plan.fused_activation = false;
      if (plan.precision == Precision::bf16) plan.recipe = Recipe::nanotron;
      if (plan.zero > 0) plan.overlap_grad_reduce = false;
      return;
    case Framework::internevo:
      plan.sequence_parallel = plan.fused_activation = plan.fused_adam = false;
      plan.grad_reduce = wire_precision(plan);
      plan.bucket_bytes = kInternEvoBucketElements * (mixed ? 2 : 4);
      if (mixed) plan.recipe = Recipe::sagemaker;
      return;
    case Framework::aleph_scaling:
      return as_aleph_scaling(plan);
  }
}

}  // namespace rehearse
