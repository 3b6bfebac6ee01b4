// GEMMs.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// c = op(a) op(b), plus the bias of each column, plus what c held before when `accumulate`; `batch` times,
// the operands so many elements apart. op transposes where asked: a is m x k, or k x m when transposed.
// a and b have one type; c may be wider (fp32 of bf16 operands). GPUs multiply fp8 with b transposed and a
// not, into bf16, fp16 or fp32, in sizes and strides that are multiples of 16; a and b may be e4m3 and e5m2
// in any pairing but two of e5m2, and are not scaled.
struct Multiply {
  Tensor a, b, c, bias;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  std::int64_t batch = 1, step_a = 0, step_b = 0, step_c = 0;

  std::int64_t m() const { return c.rows; }
  std::int64_t n() const { return c.columns; }
  std::int64_t k() const { return transpose_a ? a.rows : a.columns; }
};

}  // namespace rehearse::kernels
