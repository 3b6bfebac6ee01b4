#include "plan/fp8.h"

#include <algorithm>

#include "plan/recipe.h"

namespace rehearse {

namespace {

constexpr double kMaximum = 2, kCast = 2 + 1,
                 kTranspose = 1 + 1;  // bytes of an element of 16 bits, or of fp8

WeightCasts by_torchao(const Plan& plan) {
  const std::vector<double> cast = {kCast}, both = {kMaximum, kCast};
  switch (plan.fp8_scaling) {
    case Fp8Scaling::tensor:
      return {both, plan.recompute == Recompute::op ? cast : both, cast};
    case Fp8Scaling::tensor_gathered:
      return {{}, {}, {kTranspose}};
    case Fp8Scaling::row:
      return {both, both, both};
  }
  return {};
}

}  // namespace

bool multiplies_fp8(const Block& block, const Kernel& kernel, Precision precision) {
  return precision == Precision::fp8 && std::holds_alternative<Gemm>(kernel.what) &&
         block.tensors[static_cast<std::size_t>(kernel.reads.front())].element_bytes == 1;
}

WeightCasts weight_casts(const Plan& plan) {
  if (plan.precision != Precision::fp8) return {};
  if (plan.framework == Framework::torchtitan) return by_torchao(plan);
  const bool by_columns = plan.fp8_weight_copies == 2;
  double bytes = kCast + 1;
  if (holds_fp8_weights(plan)) bytes = by_columns ? kTranspose : 0;
  if (bytes == 0) return {};
  const bool once = plan.framework == Framework::megatron_core || holds_fp8_weights(plan);
  const auto microbatches = static_cast<double>(std::max<std::int64_t>(1, plan.microbatches()));
  if (once) return {{bytes / microbatches}, {}, {}};
  return {{bytes}, {bytes}, {}};
}

double cast_elements(const Block& block, const std::vector<Kernel>& kernels, Precision precision) {
  double elements = 0;
  for (const Kernel& kernel : kernels) {
    if (!multiplies_fp8(block, kernel, precision)) continue;
    const auto& gemm = std::get<Gemm>(kernel.what);
    if (gemm.pass != GemmPass::weight_gradient)
      elements += static_cast<double>(gemm.n) * static_cast<double>(gemm.k) * static_cast<double>(gemm.batch);
  }
  return elements;
}

Precision precision_of(const Block& block, const Kernel& kernel, Precision precision) {
  const bool is_bf16 = precision == Precision::fp8 && !multiplies_fp8(block, kernel, precision);
  return is_bf16 ? Precision::bf16 : precision;
}

}  // namespace rehearse
