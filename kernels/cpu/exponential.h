// exp, tanh and functions of them, in a form that compilers vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace rehearse::kernels::cpu {

// Error at most 2 units in the last place between -87 and 88; x is clamped there. Computes 2^n times the
// polynomial of Cephes' expf (Moshier 1992) of the remainder.
inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  const float n = std::floor(x * 1.44269504F + 0.5F);
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const auto scale = std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
  return (p * r * r + r + 1.0F) * scale;
}

inline float sigmoid(float x) {
  return 1.0F / (1.0F + exponential(-x));
}

inline float silu(float x) {
  return x * sigmoid(x);
}

inline float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}

inline float hyperbolic_tangent(float x) {
  return 2.0F * sigmoid(2.0F * x) - 1.0F;
}

}  // namespace rehearse::kernels::cpu
