// A state space in place of attention: Mamba-2 (Dao and Gu 2024, "Transformers are SSMs", section 7). Its
// multiplications and its norm are Multiply and Norm; here is what stands between them.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// output[t, c] = silu(bias[c] + sum over i of weight[c, i] input[t - (width - 1) + i, c]), along each
// sequence; what stands before its first token is 0. Rows of the weight (channels x width) are channels; the
// bias (1 x channels) may be absent. GPUs give weight gradients of a width of 8 at most.
struct Convolution {
  Tokens tokens;
  Tensor input, weight, bias, output;
};
struct ConvolutionInputGradient {
  Tokens tokens;
  Tensor output_gradient, input, weight, bias, input_gradient;
};
// Added to what the gradients held.
struct ConvolutionWeightGradient {
  Tokens tokens;
  Tensor output_gradient, input, weight, bias;
  Tensor weight_gradient, bias_gradient;
};

// heads / groups neighbouring heads share a group's B and C. GPUs take a head_dim of 128 and a state of 256
// at most; both at once need 156 KiB of shared memory, which those of data centres have.
struct ScanShape {
  Tokens tokens;  // their places are in order: a sequence is whole
  std::int64_t heads = 1, groups = 1, head_dim = 0, state = 0;

  std::int64_t inner() const { return heads * head_dim; }
};

// By head, with a state of head_dim x state that is 0 before the first token of each sequence:
//   delta = softplus(step + step_bias), decay = exp(-exp(decay_log) delta)
//   state_t = decay_t state_{t-1} + delta_t x_t B_t^T
//   ungated_t = state_t C_t + skip x_t, output = ungated silu(gate)
// `convolved` holds x (inner() columns), then B of every group, then C of every group (state columns each);
// `step` is rows x heads. step_bias, decay_log and skip are 1 x heads, and may have a type of their own.
struct Scan {
  ScanShape shape;
  Tensor gate, convolved, step, step_bias, decay_log, skip;
  Tensor ungated, output;
};

// Everything that needs the states: it runs the recurrence, forward for C and backward for the rest. So it
// leaves in `decay_gradient` (fp32, rows x heads) what each token adds to the gradient of decay_log. No
// gradient may lie where an input does.
struct ScanInputGradient {
  ScanShape shape;
  Tensor output_gradient, gate, convolved, step, step_bias, decay_log, skip, ungated;
  Tensor gate_gradient, convolved_gradient, step_gradient, decay_gradient;
};

// Sums over tokens, without the recurrence: of step_gradient, of decay_gradient, and of x times the gradient
// of `ungated`. Added to what the gradients held.
struct ScanWeightGradient {
  ScanShape shape;
  Tensor output_gradient, gate, convolved, step_gradient, decay_gradient;
  Tensor step_bias_gradient, decay_log_gradient, skip_gradient;
};

}  // namespace rehearse::kernels
