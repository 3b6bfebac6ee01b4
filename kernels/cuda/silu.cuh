// SiLU, used in MLPs and in state spaces.
#pragma once

namespace rehearse::kernels::cuda {

// Fast enough that memory bandwidth stays the limit.
__device__ inline float sigmoid(float x) { return __fdividef(1.0F, 1 + __expf(-x)); }
__device__ inline float silu(float x) { return x * sigmoid(x); }
__device__ inline float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

}  // namespace rehearse::kernels::cuda
