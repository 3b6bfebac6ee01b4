// How are a kernel's threads emulated? They are fibers. Their shared memory belongs to the one host thread
// that runs all fibers of a block.
#pragma once

#include <math.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <numbers>
#include <tuple>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __shared__ thread_local
#define __launch_bounds__(threads)

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;

namespace cuda_on_cpu {

// Waits for the warp, and returns the value of lane `other`.
std::uint64_t exchanged(unsigned mask, std::uint64_t mine, unsigned other);
unsigned lane();

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread);
cudaError_t allow_shared(const void* kernel, int bytes);

template <typename T, typename Next>
T replace(T* at, const Next& next) {
  std::atomic_ref<T> shared(*at);
  T old = shared.load(std::memory_order_relaxed);
  while (!shared.compare_exchange_weak(old, next(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace cuda_on_cpu

void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffU);
unsigned __ballot_sync(unsigned mask, bool holds);

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  static_assert(sizeof(T) == 4);
  const auto mine = std::bit_cast<std::uint32_t>(value);
  const unsigned other = cuda_on_cpu::lane() ^ static_cast<unsigned>(distance);
  return std::bit_cast<T>(static_cast<std::uint32_t>(cuda_on_cpu::exchanged(mask, mine, other)));
}

template <typename T>
T atomicAdd(T* at, T more) {
  return cuda_on_cpu::replace(at, [more](T old) { return old + more; });
}
template <typename T>
T atomicMin(T* at, T other) {
  return cuda_on_cpu::replace(at, [other](T old) { return other < old ? other : old; });
}
template <typename T>
T atomicMax(T* at, T other) {
  return cuda_on_cpu::replace(at, [other](T old) { return other > old ? other : old; });
}

inline int __popc(unsigned bits) {
  return std::popcount(bits);
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline float rsqrtf(float x) {
  return 1 / sqrtf(x);
}
inline float __expf(float x) {
  return expf(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline void sincospif(float x, float* sine, float* cosine) {
  const double angle = std::numbers::pi * x;
  *sine = static_cast<float>(sin(angle));
  *cosine = static_cast<float>(cos(angle));
}
template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
long long clock64();

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return cuda_on_cpu::launch(
      *config, reinterpret_cast<const void*>(kernel),
      [kernel, given = std::tuple<Parameters...>(std::forward<Arguments>(arguments)...)] {
        std::apply(kernel, given);
      });
}

template <typename T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute /*attribute*/, int bytes) {
  return cuda_on_cpu::allow_shared(reinterpret_cast<const void*>(kernel), bytes);
}
template <typename T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* /*kernel*/) {
  *attributes = {};  // the kernel's own declarations are unknown here
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
