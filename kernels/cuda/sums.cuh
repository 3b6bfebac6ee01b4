// Many threads sum gradients of parameters, in any order. Sums are fp32, as 16-bit sums soon stop growing,
// and are rounded once a call, as on the CPU.
#pragma once

#include <array>

#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"
#include "kernels/cuda/scratch.h"

namespace rehearse::kernels::cuda {

template <typename G>
struct AddSums {
  Rows<float> sums;
  Rows<G> gradient;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(sums) && cuda::in_packs<N>(gradient);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const Lanes<N> more = load<N>(sums.row(r) + c), old = load<N>(gradient.row(r) + c);
    store(gradient.row(r) + c, Lanes<N>::of([&](int i) { return old.x[i] + more.x[i]; }));
  }
};

// Calls sum(rows of each of the gradients, memory), which accumulates by atomicAdd(). Absent gradients have
// no data. All have one type. `memory` has memory_bytes for the kernels' own use.
template <std::size_t N, typename Sum>
void sum_in_fp32(const Context& context, const std::array<Tensor, N>& gradients, const Sum& sum, const char* what,
                 std::size_t memory_bytes = 0) {
  std::array<Rows<float>, N> sums;
  const bool as_they_are = gradients[0].type == Type::fp32;
  std::size_t bytes = 0;
  for (const Tensor& gradient : gradients) bytes += static_cast<std::size_t>(gradient.elements()) * sizeof(float);
  if (bytes == 0) return;
  constexpr std::size_t kAlignment = 256;
  memory_bytes = (memory_bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* const memory = static_cast<std::byte*>(
      context.scratch->at_least(memory_bytes + (as_they_are ? 0 : bytes), context.stream));
  auto* free = reinterpret_cast<float*>(memory + memory_bytes);
  if (!as_they_are) check(cudaMemsetAsync(free, 0, bytes, context.stream), what);
  for (std::size_t i = 0; i < N; ++i) {
    const Tensor& gradient = gradients[i];
    if (!gradient.given()) continue;
    sums[i] = as_they_are ? rows_of<float>(gradient)
                          : Rows<float>{free, gradient.rows, gradient.columns, gradient.columns};
    if (!as_they_are) free += gradient.elements();
  }
  sum(sums, static_cast<void*>(memory));
  if (as_they_are) return;
  by_type(gradients[0].type, [&](auto none) {
    using G = decltype(none);
    for (std::size_t i = 0; i < N; ++i)
      for_packs<kLanes<float>>(context.stream, sums[i].rows, sums[i].columns,
                               AddSums<G>{sums[i], rows_of<G>(gradients[i])}, what);
  });
}

}  // namespace rehearse::kernels::cuda
