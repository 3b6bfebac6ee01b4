// How is CUDA's fp8 emulated on the host?
#pragma once

#include "small_float.h"

using __nv_fp8_e4m3 = cuda_on_cpu::SmallFloat<std::uint8_t, 4, 3, 0x7e, 0x7e, 0x7f>;
using __nv_fp8_e5m2 = cuda_on_cpu::SmallFloat<std::uint8_t, 5, 2, 0x7b, 0x7b, 0x7f>;
