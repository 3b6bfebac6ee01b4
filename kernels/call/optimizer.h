// The optimizer step.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// AdamW (Loshchilov and Hutter 2019, algorithm 2). Moments and master weight have one type, usually fp32.
// `weight` (any type, may be absent) receives a copy of the master weight. Gradients (any type) are
// multiplied by `scale` (fp32, one element) where given. A NaN scale skips the step: moments and master
// weight stay as they are.
struct Adam {
  Tensor gradient, mean, square, master, weight, scale;
  float rate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, decay = 0;
  std::int64_t step = 1;  // counts from 1
};

// sum[0] (fp32) += the sum of squares.
struct SquareSum {
  Tensor input, sum;
};

// scale[0] = min(1, limit / (sqrt(sum[0]) + 1e-6)): clipping by the global norm (Pascanu et al. 2013). Where
// the loss was multiplied by `loss_scale` (0: it was not), gradients are divided by it first. The scale is
// NaN when the sum is infinite or NaN.
struct ClipScale {
  Tensor sum, scale;
  float limit = 1, loss_scale = 0;
};

}  // namespace rehearse::kernels
