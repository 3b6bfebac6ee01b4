// A state space in place of attention: Mamba-2 (Dao and Gu 2024, "Transformers are SSMs", section 7). Its
// GEMMs and its norm are Multiply and Norm; this file has the kernels between them.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// output[t, c] = silu(bias[c] + sum over i of weight[c, i] input[t - (width - 1) + i, c]), along each
// sequence. Inputs before its first token are 0. The weight (channels x width) has a row for each channel.
// The bias (1 x channels) may be absent. GPUs compute weight gradients for widths up to 8.
struct Convolution {
  Tokens tokens;
  Tensor input, weight, bias, output;
};
struct ConvolutionInputGradient {
  Tokens tokens;
  Tensor output_gradient, input, weight, bias, input_gradient;
};
// Gradients are accumulated.
struct ConvolutionWeightGradient {
  Tokens tokens;
  Tensor output_gradient, input, weight, bias;
  Tensor weight_gradient, bias_gradient;
};

// heads / groups neighbouring heads share a group's B and C. GPUs take a head_dim up to 128 and a state up to
// 256. Both at once need 156 KiB of shared memory, which data-centre GPUs have.
struct ScanShape {
  Tokens tokens;  // places are in order: a sequence is whole
  std::int64_t heads = 1, groups = 1, head_dim = 0, state = 0;

  std::int64_t inner() const { return heads * head_dim; }
};

// For each head, with a state of head_dim x state that is 0 before the first token of each sequence:
//   delta = softplus(step + step_bias), decay = exp(-exp(decay_log) delta)
//   state_t = decay_t state_{t-1} + delta_t x_t B_t^T
//   ungated_t = state_t C_t + skip x_t, output = ungated silu(gate)
// `convolved` holds x (inner() columns), then B of every group, then C of every group (state columns each).
// `step` is rows x heads. step_bias, decay_log and skip are 1 x heads, and may have a type of their own.
struct Scan {
  ScanShape shape;
  Tensor gate, convolved, step, step_bias, decay_log, skip;
  Tensor ungated, output;
};

// All gradients that need the states. The kernel runs the recurrence forward for C, and backward for the
// rest. It also writes `decay_gradient` (fp32, rows x heads): each token's contribution to the gradient of
// decay_log. No gradient may share memory with an input.
struct ScanInputGradient {
  ScanShape shape;
  Tensor output_gradient, gate, convolved, step, step_bias, decay_log, skip, ungated;
  Tensor gate_gradient, convolved_gradient, step_gradient, decay_gradient;
};

// Sums over tokens, without the recurrence: of step_gradient, of decay_gradient, and of x times the gradient
// of `ungated`. Gradients are accumulated.
struct ScanWeightGradient {
  ScanShape shape;
  Tensor output_gradient, gate, convolved, step_gradient, decay_gradient;
  Tensor step_bias_gradient, decay_log_gradient, skip_gradient;
};

}  // namespace rehearse::kernels
