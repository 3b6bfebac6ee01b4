// GEMMs.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// c = op(a) op(b), plus the bias of each column. With `accumulate`, the result is added to c. op transposes
// where asked: a is m x k, or k x m when transposed. `batch` GEMMs run, with operands step_a, step_b and
// step_c elements apart. a and b have one type; c may be wider (fp32 of bf16 operands). GPUs multiply fp8
// under these conditions:
// - b is transposed and a is not;
// - the output is bf16, fp16 or fp32;
// - sizes and strides are multiples of 16;
// - a and b are e4m3 or e5m2, but not both e5m2. They are not scaled.
struct Multiply {
  Tensor a, b, c, bias;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  std::int64_t batch = 1, step_a = 0, step_b = 0, step_c = 0;

  std::int64_t m() const { return c.rows; }
  std::int64_t n() const { return c.columns; }
  std::int64_t k() const { return transpose_a ? a.rows : a.columns; }
};

}  // namespace rehearse::kernels
