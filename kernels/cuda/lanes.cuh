// How does a thread load several neighbours of a row in one memory access? With loads of two bytes, the
// threads of an SM have too few bytes in flight to use the bandwidth.
#pragma once

#include "kernels/cuda/common.cuh"

namespace rehearse::kernels::cuda {

// Elements of one 16-byte access, for the widest type among the operands.
template <typename... T>
constexpr int kLanes = 16 / static_cast<int>(std::max({sizeof(T)...}));

template <int N>
struct Lanes {
  float x[N];
  template <typename Each>
  __device__ static Lanes of(const Each& each) {
    Lanes all;
    for (int i = 0; i < N; ++i) all.x[i] = each(i);
    return all;
  }
};

template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T x[N];
};

// N elements from `first` on, aligned to their size: unconverted, or as numbers.
template <int N, typename T>
__device__ Pack<T, N> load_pack(const T* first) {
  return *reinterpret_cast<const Pack<T, N>*>(first);
}
template <typename T, int N>
__device__ Lanes<N> lanes_of(const Pack<T, N>& pack) {
  return Lanes<N>::of([&](int i) { return to_float(pack.x[i]); });
}
template <int N, typename T>
__device__ Lanes<N> load(const T* first) {
  return lanes_of(load_pack<N>(first));
}
template <int N, typename T>
__device__ void store(T* first, const Lanes<N>& lanes) {
  Pack<T, N> pack;
  for (int i = 0; i < N; ++i) pack.x[i] = from_float<T>(lanes.x[i]);
  *reinterpret_cast<Pack<T, N>*>(first) = pack;
}

// Whether every row can be loaded N elements at a time. Absent operands can.
template <int N, typename T>
bool in_packs(const Rows<T>& rows) {
  return rows.data == nullptr || (rows.columns % N == 0 && (rows.stride % N == 0 || rows.rows == 1) &&
                                  reinterpret_cast<std::uintptr_t>(rows.data) % (sizeof(T) * N) == 0);
}
template <int N, typename T>
bool in_packs(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % (sizeof(T) * N) == 0;
}

// body.at<N>(row, column) for every N-th element, consecutive threads along a row.
template <int N, typename Body>
__global__ void packs(std::int64_t rows, std::int64_t columns, Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * N;
  for (std::int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
    for (std::int64_t c = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; c < columns; c += step)
      body.template at<N>(r, c);
  }
}

// N at a time where body.in_packs<N>() allows it, else one by one.
template <int N, typename Body>
void for_packs(cudaStream_t stream, std::int64_t rows, std::int64_t columns, const Body& body, const char* what) {
  if (rows * columns == 0) return;
  const auto go = [&](auto kernel, int lanes) {
    constexpr std::int64_t kWarp = 32;
    const std::int64_t across = columns / lanes, warps = (across + kWarp - 1) / kWarp;
    const auto threads = static_cast<unsigned>(std::min<std::int64_t>(kThreads, warps * kWarp));
    const dim3 blocks(some_blocks((across + threads - 1) / threads), some_blocks(rows));
    launch(stream, what, kernel, {blocks, threads}, rows, columns, body);
  };
  if (columns % N == 0 && body.template in_packs<N>()) return go(packs<N, Body>, N);
  go(packs<1, Body>, 1);
}

}  // namespace rehearse::kernels::cuda
