// The GEMM that the CPU's kernels use.
#pragma once

#include <cstdint>
#include <string>

namespace rehearse::kernels::cpu {

// Row-major operand. op(a) transposes where asked; rows are `step` elements apart.
struct Factor {
  const float* data = nullptr;
  std::int64_t step = 0;
  bool transpose = false;
};

// c = alpha op(a) op(b) + beta c; c is m x n, op(a) m x k. Runs on the calling thread alone.
void sgemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, Factor a, Factor b, float beta,
           float* c, std::int64_t step);

std::string blas_name();  // with its version and the processor that its kernels are for

}  // namespace rehearse::kernels::cpu
