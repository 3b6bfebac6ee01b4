// Which time can no kernel beat on this GPU? (Williams, Waterman, Patterson 2009: the roofline.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "plan/work.h"

namespace rehearse {

// Bytes of one element of a GEMM's operands. In fp4 they include its share of the scale of a block of 16
// (NVFP4).
constexpr double bytes_of_operand(std::string_view precision) {
  if (precision == "fp32") return 4;
  if (precision == "fp8") return 1;
  return precision == "fp4" ? kFp4Bytes : 2;
}

struct Roofline {
  double peak_flops = 0;        // of the kernel's precision
  double memory_bandwidth = 0;  // bytes/s
  double operand_bytes = 2;     // of an element of A and B
  double result_bytes = 2;      // of an element of C
  double hidden_bytes = 0;      // of an element of C, that move while its tiles compute
};

// Seconds: every operand moves once, or every FLOP runs at peak, whichever takes longer.
inline double gemm_bound(const Roofline& roof, double m, double n, double k, double batch = 1) {
  const double compute = 2 * m * n * k / roof.peak_flops;
  const double memory =
      (roof.operand_bytes * (m * k + k * n) + (roof.result_bytes + roof.hidden_bytes) * m * n) /
      roof.memory_bandwidth;
  return batch * std::max(compute, memory);
}

}  // namespace rehearse
