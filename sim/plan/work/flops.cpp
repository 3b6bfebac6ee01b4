#include "plan/work.h"

namespace rehearse {

namespace {

// Matrix products of fused attention: forward QK^T and PV; backward QK^T again, dP, dV, dQ and dK.
constexpr double kForwardProducts = 2;
constexpr double kBackwardProducts = 5;

double products(const Attention& attention) {
  return attention.backward ? kBackwardProducts : kForwardProducts;
}

double flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += flops(kernel);
  return sum;
}

// The product that fused attention's backward kernel repeats.
double rescore_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    const auto* attention = std::get_if<Attention>(&kernel.what);
    if (attention != nullptr && attention->backward) sum += flops(kernel) / kBackwardProducts;
  }
  return sum;
}

}  // namespace

double flops(const Kernel& kernel) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) {
    return 2.0 * static_cast<double>(gemm->m) * static_cast<double>(gemm->n) * static_cast<double>(gemm->k) *
           static_cast<double>(gemm->batch);
  }
  if (const auto* attention = std::get_if<Attention>(&kernel.what)) {
    return 2.0 * products(*attention) * static_cast<double>(attention->batch * attention->heads) *
           static_cast<double>(attention->query) * static_cast<double>(attention->keys) *
           static_cast<double>(attention->head_dim);
  }
  return 0;
}

FlopCount count_flops(const Work& work, const Plan& plan) {
  FlopCount count;
  for (const std::vector<Repeated>& part : work.parts) {
    for (const Repeated& repeated : part) {
      const Block& block = work.blocks[static_cast<std::size_t>(repeated.block)];
      const double times = static_cast<double>(repeated.repeats) * plan.tp;
      const double rescore = rescore_flops(block.backward_input);
      count.forward += times * flops(block.forward);
      count.recompute += times * flops(block.recompute);
      count.backward += times * (flops(block.backward_input) - rescore + flops(block.backward_weight));
      count.rescore += times * rescore;
    }
  }
  return count;
}

}  // namespace rehearse
