#include "execute/state_types.h"

#include "plan/recipe.h"

namespace rehearse {

namespace {

constexpr double kFp32Bytes = 4;  // bytes of fp32

kernels::Type type_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return kernels::Type::fp32;
    case Precision::fp16:
      return kernels::Type::fp16;
    default:
      return kernels::Type::bf16;
  }
}

}  // namespace

StateTypes state_types(const Plan& plan) {
  const StateBytes bytes = state_bytes(plan);
  StateTypes types;
  types.value = type_of(plan.precision);
  const auto of = [&](double each) { return each == kFp32Bytes ? kernels::Type::fp32 : types.value; };
  types.gradient = of(bytes.gradient);
  types.fresh_gradient = bytes.fresh_gradient > 0 ? of(bytes.fresh_gradient) : types.gradient;
  types.stepped_gradient = bytes.gradient_copy > 0 ? of(bytes.gradient_copy) : types.gradient;
  types.wire = type_of(plan.grad_reduce);
  types.moment = of(bytes.moments / 2);
  // FSDP's fp32 weight is also a master weight: its gathered values have 16 bits.
  types.has_master = plan.precision != Precision::fp32 && (bytes.master > 0 || bytes.parameter == kFp32Bytes);
  if (plan.offload == Offload::optimizer) types.optimizer = kernels::Place::host;
  return types;
}

}  // namespace rehearse
