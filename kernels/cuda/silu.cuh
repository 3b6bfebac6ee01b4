// SiLU, which stands in MLPs and in state spaces.
#pragma once

namespace rehearse::kernels::cuda {

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ inline float silu(float x) { return x * sigmoid(x); }
__device__ inline float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

}  // namespace rehearse::kernels::cuda
