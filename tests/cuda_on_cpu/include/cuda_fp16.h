// How is CUDA's fp16 emulated on the host?
#pragma once

#include "small_float.h"

using __half = cuda_on_cpu::SmallFloat<std::uint16_t, 5, 10, 0x7bff, 0x7c00, 0x7fff>;

inline __half __float2half(float number) {
  return __half(number);
}
inline float __half2float(__half number) {
  return static_cast<float>(number);
}
