// How is CUDA's bf16 emulated on the host?
#pragma once

#include "small_float.h"

using __nv_bfloat16 = cuda_on_cpu::SmallFloat<std::uint16_t, 8, 7, 0x7f7f, 0x7f80, 0x7fff>;

inline __nv_bfloat16 __float2bfloat16(float number) {
  return __nv_bfloat16(number);
}
inline float __bfloat162float(__nv_bfloat16 number) {
  return static_cast<float>(number);
}
