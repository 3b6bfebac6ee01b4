#include "plan/fp8.h"

#include <algorithm>

#include "plan/frameworks/traits.h"
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
    case Fp8Scaling::mx:  // blocks of rows, then of columns (torchao, prototype/mx_formats/mx_linear.py)
      return {cast, cast, cast};
    case Fp8Scaling::current:
      break;
  }
  return {};
}

std::vector<double> by_transformer_engine(const Plan& plan) {
  if (plan.precision == Precision::fp4) return {kMaximum, 2 + 2 * kFp4Bytes};
  const bool by_columns = plan.fp8_scaling == Fp8Scaling::mx || !plan.fp8_either_layout;
  const double cast = kCast + (by_columns ? 1 : 0);
  if (holds_fp8_weights(plan)) {
    if (plan.fp8_scaling == Fp8Scaling::mx) return {cast};
    if (plan.fp8_weight_copies == 2) return {kTranspose};
    return {};
  }
  if (plan.fp8_scaling == Fp8Scaling::current) return {kMaximum, cast};
  return {cast};
}

}  // namespace

bool multiplies_quantized(const Block& block, const Kernel& kernel, Precision precision) {
  return is_quantized(precision) && std::holds_alternative<Gemm>(kernel.what) &&
         block.tensors[static_cast<std::size_t>(kernel.reads.front())].element_bytes <= 1;
}

WeightCasts weight_casts(const Plan& plan) {
  if (!is_quantized(plan.precision)) return {};
  if (traits(plan).fp8 == Fp8Library::torchao) return by_torchao(plan);
  std::vector<double> bytes = by_transformer_engine(plan);
  if (traits(plan).fp8 != Fp8Library::transformer_engine && !holds_fp8_weights(plan))
    return {bytes, bytes, {}};
  const auto microbatches = static_cast<double>(std::max<std::int64_t>(1, plan.microbatches()));
  for (double& each : bytes) each /= microbatches;
  return {bytes, {}, {}};
}

double cast_elements(const Block& block, const std::vector<Kernel>& kernels, Precision precision) {
  double elements = 0;
  for (const Kernel& kernel : kernels) {
    if (!multiplies_quantized(block, kernel, precision)) continue;
    const auto& gemm = std::get<Gemm>(kernel.what);
    if (gemm.pass != GemmPass::weight_gradient)
      elements += static_cast<double>(gemm.n) * static_cast<double>(gemm.k) * static_cast<double>(gemm.batch);
  }
  return elements;
}

Precision precision_of(const Block& block, const Kernel& kernel, Precision precision) {
  const bool is_bf16 = is_quantized(precision) && !multiplies_quantized(block, kernel, precision);
  return is_bf16 ? Precision::bf16 : precision;
}

}  // namespace rehearse
