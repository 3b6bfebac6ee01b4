// Kernels that pass over memory once: norms, rotary positions, activations, sums, dropout.
// Gradients of parameters are fp32 and are added to what they held.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/philox.h"
#include "kernels/tensor.h"

namespace rehearse::kernels {

// Every row holds `groups` vectors of equal length, each normalised by itself. A weight as long as a vector
// is shared by all (Qwen3's heads); one as long as the row has its own for each (Mamba-2's groups); the bias
// is as long as the weight. Centred: LayerNorm (Ba et al. 2016); else RMSNorm (Zhang and Sennrich 2019). On
// GPUs the output of Norm may be fp8, not scaled.
struct NormShape {
  bool centred = false;
  std::int64_t groups = 1;
  float epsilon = 1e-5F;
};
struct Norm {
  NormShape shape;
  Tensor input, weight, bias, output;
};
struct NormInputGradient {
  NormShape shape;
  Tensor output_gradient, input, weight, input_gradient;
};
struct NormWeightGradient {
  NormShape shape;
  Tensor output_gradient, input, weight_gradient, bias_gradient;
};

// Turns element pairs (i, i + head_dim / 2) of every head by position x base^(-2 i / head_dim) (Su et al.
// 2021, in the order of Llama); backward turns back.
struct Rotary {
  Tokens tokens;
  std::int64_t heads = 1, kv_heads = 1;
  float base = 10000;
  bool back = false;
  Tensor query, key, query_output, key_output;
};

// Heads of multi-head latent attention (DeepSeek-V2, equations 9 to 18). A head of a query or key is `own`
// elements and then `turned` ones; those of the key are the same for all heads. Keys and values come as each
// head's own part of the key, then its value.
struct LatentHeads {
  Tokens tokens;
  std::int64_t heads = 1, own = 0, turned = 0, value = 0;
  float base = 10000;
};

// Puts whole keys together, turned parts as Rotary turns a head, and values side by side.
struct LatentRotary {
  LatentHeads heads;
  Tensor query, shared_key, keys_and_values;
  Tensor query_output, key_output, value_output;
};

// From the gradients of what it wrote to those of what it read.
struct LatentRotaryBackward {
  LatentHeads heads;
  Tensor query_output_gradient, key_output_gradient, value_output_gradient;
  Tensor query_gradient, shared_key_gradient, keys_and_values_gradient;
};

// gelu: the tanh form (Hendrycks and Gimpel 2016). swiglu: SiLU of the first half of the columns times the
// second (Shazeer 2020). squared_relu: relu(x)^2 (So et al. 2021). `weights` (fp32, one a row) scales rows,
// as a router asks for.
enum class ActivationKind : std::uint8_t { gelu, swiglu, squared_relu };
struct Activation {
  ActivationKind kind = ActivationKind::gelu;
  Tensor input, weights, output;
};
struct ActivationBackward {
  ActivationKind kind = ActivationKind::gelu;
  Tensor output_gradient, input, weights, input_gradient, weights_gradient;
};

// output = the sum of `inputs` (those given, at least one) and the bias of each column. The output may be any
// of the inputs.
struct Add {
  std::array<Tensor, 4> inputs;
  Tensor bias, output;
};

// Which random numbers a rank's elements take of those that all of the tensor takes: element i number
// first + i / run x stride + i % run, and `skip` more from element `turn` on.
struct Draws {
  std::int64_t first = 0, run = 1, stride = 1;
  std::int64_t turn = INT64_MAX, skip = 0;
  REHEARSE_ON_DEVICE std::int64_t number(std::int64_t i) const {
    return first + i / run * stride + i % run + (i < turn ? 0 : skip);
  }
};

// output = residual + mask (input + bias) / (1 - rate). An element is kept when philox(seed, number) says so:
// the same on every device, and independent of how the work is split.
struct Dropout {
  Tensor input, bias, residual, output, mask;
  float rate = 0;
  std::uint64_t seed = 0;
  Draws draws = {};
};
struct DropoutBackward {
  Tensor output_gradient, mask, input_gradient;
  float rate = 0;
};

// bias_gradient += sum of rows.
struct BiasGradient {
  Tensor output_gradient, bias_gradient;
};

// output = input in the output's type.
struct Cast {
  Tensor input, output;
};

// An fp8 operand: rows = input / scale, columns the same transposed; either may be missing. `maximum` (fp32,
// one element) is raised to the input's largest magnitude; without a scale (likewise) it is 1. The CPU's are
// fp32.
struct Quantize {
  Tensor input, scale, maximum, rows, columns;
};

// Uniform in [mean - spread, mean + spread), each element from philox(seed, its number).
struct Randomise {
  Tensor output;
  float mean = 0, spread = 1;
  std::uint64_t seed = 0;
  Draws draws = {};
};

}  // namespace rehearse::kernels
