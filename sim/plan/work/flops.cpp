#include <algorithm>
#include <cmath>

#include "plan/work.h"

namespace rehearse {

namespace {

double v_width(const Attention& attention) {
  return static_cast<double>(attention.v_head_dim > 0 ? attention.v_head_dim : attention.head_dim);
}

// Query and key pairs of one head, as full squares: twice the pairs that a causal mask with this window
// leaves.
double pairs(const Attention& attention) {
  const auto query = static_cast<double>(attention.query), keys = static_cast<double>(attention.keys);
  const auto window = static_cast<double>(attention.window);
  const double outside = window > 0 && window < keys ? (keys - window) * (keys - window) / keys : 0;
  return static_cast<double>(attention.steps) * query * (keys - outside);
}

// FLOPs of one matmul over a width of one, for all heads.
double unit_flops(const Attention& attention) {
  return 2.0 * static_cast<double>(attention.batch * attention.heads) * pairs(attention);
}

bool of_experts(const Kernel& kernel) {
  const auto* gemm = std::get_if<Gemm>(&kernel.what);
  return gemm != nullptr && gemm->of_experts;
}

double flops(const std::vector<Kernel>& kernels, double expert_load) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += flops(kernel) / (of_experts(kernel) ? expert_load : 1);
  return sum;
}

// FLOPs that tensor-parallel ranks repeat and pad, over `times` runs. They are rounded, since a model has
// whole FLOPs.
double repeated_flops(const std::vector<Kernel>& kernels, double times) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    const auto* gemm = std::get_if<Gemm>(&kernel.what);
    if (gemm != nullptr) sum += std::round(times * (1 - gemm->of_model) * flops(kernel));
  }
  return sum;
}

// FLOPs of one multiplication and addition for each token: over the squares of chunks, and over the states.
struct ScanFlops {
  double squares = 0, states = 0;
};
ScanFlops unit_flops(const Scan& scan) {
  const auto inner = static_cast<double>(scan.heads * scan.head_dim);
  const double of_a_token = 2.0 * static_cast<double>(scan.tokens);
  return {
      of_a_token * static_cast<double>(scan.chunk) * (static_cast<double>(scan.groups * scan.state) + inner),
      of_a_token * inner * static_cast<double>(scan.state)};
}

// FLOPs of GEMMs that the backward kernels of fused attention and of scans repeat.
double rescore_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    const auto* scan = std::get_if<Scan>(&kernel.what);
    if (scan != nullptr && scan->backward) sum += unit_flops(*scan).squares + unit_flops(*scan).states;
    const auto* attention = std::get_if<Attention>(&kernel.what);
    if (attention != nullptr && attention->backward)
      sum += unit_flops(*attention) * static_cast<double>(attention->head_dim);
  }
  return sum;
}

}  // namespace

// Forward QK^T and PV. Backward repeats QK^T, with dQ and dK over the width of keys, and dP and dV over that
// of values.
double flops(const Attention& attention) {
  const auto width = static_cast<double>(attention.head_dim);
  return unit_flops(attention) *
         (attention.backward ? 3 * width + 2 * v_width(attention) : width + v_width(attention));
}

// Forward has scores and their GEMM with the inputs, states and their GEMM with the output maps. Backward
// repeats both, and adds the gradients of each GEMM for both of its operands.
double flops(const Scan& scan) {
  const ScanFlops unit = unit_flops(scan);
  return scan.backward ? 3 * unit.squares + 5 * unit.states : unit.squares + 2 * unit.states;
}

std::int64_t chunks_of(const Kernel& kernel) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) return gemm->chunks;
  const auto* attention = std::get_if<Attention>(&kernel.what);
  return attention != nullptr ? attention->steps : 1;
}

bool runs_beside(const Kernel& collective, const Kernel& other) {
  const Overlap& overlap = collective.overlap;
  if (std::holds_alternative<Attention>(other.what)) return overlap.attention;
  const auto* gemm = std::get_if<Gemm>(&other.what);
  return gemm != nullptr && gemm->weight >= 0 && gemm->pass == overlap.pass &&
         std::find(overlap.weights.begin(), overlap.weights.end(), gemm->weight) != overlap.weights.end();
}

double flops(const Kernel& kernel) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) {
    return 2.0 * static_cast<double>(gemm->m) * static_cast<double>(gemm->n) * static_cast<double>(gemm->k) *
           static_cast<double>(gemm->batch);
  }
  if (const auto* attention = std::get_if<Attention>(&kernel.what)) {
    return flops(*attention);
  }
  if (const auto* scan = std::get_if<Scan>(&kernel.what)) return flops(*scan);
  return 0;
}

FlopCount count_flops(const Work& work, const Plan& plan) {
  FlopCount count;
  const double load = plan.expert_load();
  for (const std::vector<Repeated>& part : work.parts) {
    for (const Repeated& repeated : part) {
      const Block& block = work.blocks[static_cast<std::size_t>(repeated.block)];
      const double times = static_cast<double>(repeated.repeats) * plan.tp * plan.cp;
      const double rescore = rescore_flops(block.backward_input);
      const double forward = repeated_flops(block.forward, times);
      const double backward =
          repeated_flops(block.backward_input, times) + repeated_flops(block.backward_weight, times);
      count.forward += times * flops(block.forward, load) - forward;
      count.recompute += times * flops(block.recompute, load);
      count.backward +=
          times * (flops(block.backward_input, load) - rescore + flops(block.backward_weight, load)) -
          backward;
      count.rescore += times * rescore;
      count.repeated += forward + backward;
    }
  }
  return count;
}

}  // namespace rehearse
