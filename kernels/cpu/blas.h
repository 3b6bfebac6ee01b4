// The GEMM that the CPU's kernels are built on.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse::kernels::cpu {

// Row-major operand: op(a) transposes where asked; `step` elements from row to row.
struct Factor {
  const float* data = nullptr;
  std::int64_t step = 0;
  bool transpose = false;
};

// c = alpha op(a) op(b) + beta c; c is m x n, op(a) m x k. On the calling thread alone.
void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta,
           float* c, std::int64_t step);

std::string blas_name();  // with its version and the processor that it chose its kernels for

}  // namespace rehearse::kernels::cpu
