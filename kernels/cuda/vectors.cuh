// Vectors of a norm: a block reads the elements once and keeps them in registers, and computes mean and
// scale.
#pragma once

#include <cstring>
#include <utility>

#include "kernels/cuda/lanes.cuh"
#include "kernels/call.h"

namespace rehearse::kernels::cuda {

struct Moments {
  float mean, scale;
};

// Packs of a vector that a thread keeps: 64 bytes of the narrowest type, or fewer where registers hold
// numbers.
template <int N>
constexpr int kKept = N == 1 ? 8 : 32 / N;
template <int N>
constexpr std::int64_t kMaxKept = std::int64_t{kThreads} * kKept<N> * N;  // elements of a vector, by a block

// each(i) for i from 0 to Count - 1, unrolled, so that i can index registers.
template <int... I, typename Each>
__device__ void unrolled(std::integer_sequence<int, I...> /*counts*/, const Each& each) {
  (each(I), ...);
}
template <int Count, typename Each>
__device__ void unrolled(const Each& each) {
  unrolled(std::make_integer_sequence<int, Count>(), each);
}

// each(pack of this thread, column) for every pack of N elements that this thread handles.
template <int N, typename Each>
__device__ void each_pack(std::int64_t width, const Each& each) {
  const std::int64_t first = std::int64_t{threadIdx.x} * N, step = std::int64_t{blockDim.x} * N;
  unrolled<kKept<N>>([&](int pack) {
    if (first + pack * step < width) each(pack, first + pack * step);
  });
  for (std::int64_t c = first + kKept<N> * step; c < width; c += step) each(kKept<N>, c);
}

// The same pack, but the compiler forgets its conversion to numbers. Converted numbers take twice the
// registers until their next use. Blocks that an SM has no registers for have no loads in flight.
template <typename T, int N>
__device__ Pack<T, N> packed(Pack<T, N> pack) {
  if constexpr (sizeof(T) < sizeof(unsigned) && sizeof(pack) % sizeof(unsigned) == 0) {
    unsigned words[sizeof(pack) / sizeof(unsigned)];
    memcpy(words, &pack, sizeof(pack));
    for (unsigned& word : words) asm volatile("" : "+r"(word));
    memcpy(&pack, words, sizeof(pack));
  }
  return pack;
}

// This thread's packs of a vector. For a vector wider than a block keeps, the others are read at each use.
template <int N, typename T>
class Vector {
 public:
  __device__ Vector(const T* from, std::int64_t width) : from_(from) {
    each_pack<N>(width, [&](int pack, std::int64_t c) {
      if (pack < kKept<N>) kept_[pack] = load_pack<N>(from + c);
    });
  }
  __device__ Lanes<N> at(int pack, std::int64_t c) const {
    return pack < kKept<N> ? lanes_of(packed(kept_[pack])) : load<N>(from_ + c);
  }

 private:
  const T* from_;
  Pack<T, N> kept_[kKept<N>];
};

// Each sum over the whole block; every thread gets them.
template <int V>
__device__ void block_sums(float (&sums)[V]) {
  __shared__ float of_warps[kThreads / 32][V];
  for (int offset = 16; offset > 0; offset /= 2)
    unrolled<V>([&](int v) { sums[v] += __shfl_xor_sync(0xffffffffU, sums[v], offset); });
  if (blockDim.x == 32) return;
  __syncthreads();  // the last use of `of_warps` is over
  unrolled<V>([&](int v) {
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][v] = sums[v];
  });
  __syncthreads();
  unrolled<V>([&](int v) { sums[v] = 0; });
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) unrolled<V>([&](int v) { sums[v] += of_warps[warp][v]; });
}

// Squares are of the distance from the mean: sums of squares lose precision where the mean is far from 0.
template <int N, typename T>
__device__ Moments moments_of(const Vector<N, T>& x, std::int64_t width, const NormShape& shape) {
  const float share = 1 / static_cast<float>(width);
  const auto sum_of = [&](const auto& each) {
    float sum[1] = {};
    each_pack<N>(width, [&](int pack, std::int64_t c) {
      for (const float value : x.at(pack, c).x) sum[0] += each(value);
    });
    block_sums(sum);
    return sum[0];
  };
  const float mean = shape.centred ? sum_of([](float value) { return value; }) * share : 0.0F;
  const float squares = sum_of([&](float value) { return (value - mean) * (value - mean); });
  return {mean, rsqrtf(squares * share + shape.epsilon)};
}

// Vectors of several groups side by side.
template <int N, typename T>
bool in_packs(const Rows<T>& rows, std::int64_t groups) {
  return in_packs<N>(rows) && rows.columns / groups % N == 0;
}

// One block a vector, with as many threads as have four packs of so many each; blocks along y take a group
// each.
template <typename T>
Grid by_vector(const Rows<T>& rows, const NormShape& shape, int lanes) {
  constexpr std::int64_t kWarp = 32, kPacks = 4;
  const std::int64_t threads = (rows.columns / shape.groups / lanes / kPacks + kWarp - 1) / kWarp * kWarp;
  return {dim3(some_blocks(rows.rows), static_cast<unsigned>(shape.groups)),
          static_cast<unsigned>(std::clamp<std::int64_t>(threads, kWarp, kThreads))};
}

}  // namespace rehearse::kernels::cuda
