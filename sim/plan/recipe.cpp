#include "plan/recipe.h"

#include "plan/frameworks/traits.h"
#include "plan/sharding.h"

namespace rehearse {

namespace {

constexpr double kCastBytes = 4 + 2;  // between fp32 and 16 bits, either way

StateBytes of_recipe(const Plan& plan) {
  if (plan.precision == Precision::fp32) return {4, 4, 0, 0, 0, 8};
  switch (plan.recipe) {
    case Recipe::megatron:
    case Recipe::fp8_weights:
      return {2, 4, 0, 0, 4, 8};
    case Recipe::zero:
      return {2, 2, 0, 0, 4, 8};
    case Recipe::sagemaker:
      return {2, 2, 0, 4, 4, 8};
    case Recipe::deepspeed_bf16:
      return {2, 4, 2, 0, 4, 8};
    case Recipe::nanotron:
      return {2, 4, 2, 0, 4, 8, plan.dp * plan.cp > 1 && plan.zero == 0 ? 2.0 : 0.0};
    case Recipe::fsdp:
      return {4, 4, 0, 0, 0, 8};
    case Recipe::autocast:
      return {4, 4, 2, 0, 0, 8};
    case Recipe::bf16:
      return {2, 2, 0, 0, 0, 4};
  }
  return {};
}

// PyTorch, torch/csrc/autograd/functions/accumulate_grad.h: a gradient in its own type becomes that of the
// first microbatch, and later ones are added in place. Where they are reduced first, this is a rank's shard
// of them. Megatron-LM's hook adds every one to fp32.
std::vector<double> autograd_bytes(const Plan& plan) {
  const bool shards = reduces_each_microbatch(plan);
  if (plan.fused_accumulation && !shards) return {};
  const double kept = state_bytes(plan).gradient;
  const double fresh = shards || plan.precision == Precision::fp32 ? kept : 2;
  const auto microbatches = static_cast<double>(plan.microbatches());
  const double added = kept > fresh ? microbatches : microbatches - 1;
  if (added == 0) return {};
  return {(fresh + 2 * kept) / (shards ? shard_size(plan) : 1) * added / microbatches};
}

}  // namespace

StateBytes state_bytes(const Plan& plan) {
  StateBytes bytes = of_recipe(plan);
  if (plan.fp8_weight_copies == 1) bytes.parameter = 1;
  return bytes;
}

bool holds_fp8_weights(const Plan& plan) {
  return plan.precision == Precision::fp8 &&
         (plan.recipe == Recipe::fp8_weights || plan.fp8_weight_copies == 1);
}

bool drops_fresh_gradients(const Plan& plan) {
  return plan.recipe == Recipe::nanotron;
}

bool gradients_come_anew(const Plan& plan) {
  return has_local_ddp(plan) && plan.microbatches() == 1;
}

bool has_local_ddp(const Plan& plan) {
  return traits(plan).has_local_ddp && plan.recipe == Recipe::sagemaker && plan.zero == 0 &&
         !plan.overlap_grad_reduce && !plan.fused_step;
}

double weight_cast_bytes(const Plan& plan) {
  return plan.recipe == Recipe::autocast && plan.precision != Precision::fp32 ? kCastBytes : 0;
}

std::vector<double> addition_bytes(const Plan& plan) {
  constexpr double kAdd = 4 + 4 + 4, kAddOfTwoTypes = 2 + 4 + 4;
  if (state_bytes(plan).fresh_gradient == 0) return autograd_bytes(plan);
  if (plan.recipe == Recipe::nanotron) return {kAddOfTwoTypes};
  return {kCastBytes, kAdd};
}

}  // namespace rehearse
