#include "plan/recipe.h"

namespace rehearse {

StateBytes state_bytes(const Plan& plan) {
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
    case Recipe::fsdp:
      return {4, 4, 0, 0, 0, 8};
    case Recipe::bf16:
      return {2, 2, 0, 0, 0, 4};
  }
  return {};
}

}  // namespace rehearse
