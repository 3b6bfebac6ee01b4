// Kernels that pass over memory once: norms, rotary positions, activations, sums, dropout. Gradients of
// parameters are fp32 and are accumulated.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/philox.h"
#include "kernels/tensor.h"

namespace rehearse::kernels {

// Every row holds `groups` vectors of equal length, each normalised by itself. A weight as long as a vector
// is shared by all of them (Qwen3's heads). A weight as long as the row differs for each vector (Mamba-2's
// groups). The bias is as long as the weight. Centred: LayerNorm (Ba et al. 2016); else RMSNorm (Zhang and
// Sennrich 2019). On GPUs the output of Norm may be fp8, not scaled.
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

// Rotates element pairs (i, i + head_dim / 2) of every head by the angle position x base^(-2 i / head_dim)
// (Su et al. 2021, in the order of Llama). `back` rotates by the negative angle.
struct Rotary {
  Tokens tokens;
  std::int64_t heads = 1, kv_heads = 1;
  float base = 10000;
  bool back = false;
  Tensor query, key, query_output, key_output;
};

// Heads of multi-head latent attention (DeepSeek-V2, equations 9 to 18). A head of a query or key has `own`
// elements, then `turned` (rotated) ones. All heads share the rotated elements of the key. The input of keys
// and values holds, for each head, its own part of the key and then its value.
struct LatentHeads {
  Tokens tokens;
  std::int64_t heads = 1, own = 0, turned = 0, value = 0;
  float base = 10000;
};

// Assembles whole keys, with the turned parts rotated as in Rotary. Writes values side by side.
struct LatentRotary {
  LatentHeads heads;
  Tensor query, shared_key, keys_and_values;
  Tensor query_output, key_output, value_output;
};

// Computes gradients of the inputs of LatentRotary from gradients of its outputs.
struct LatentRotaryBackward {
  LatentHeads heads;
  Tensor query_output_gradient, key_output_gradient, value_output_gradient;
  Tensor query_gradient, shared_key_gradient, keys_and_values_gradient;
};

// gelu: the tanh form (Hendrycks and Gimpel 2016). swiglu: SiLU of the first half of the columns times the
// second half (Shazeer 2020). squared_relu: relu(x)^2 (So et al. 2021). `weights` (fp32, one a row) scales
// rows, as a router needs.
enum class ActivationKind : std::uint8_t { gelu, swiglu, squared_relu };
struct Activation {
  ActivationKind kind = ActivationKind::gelu;
  Tensor input, weights, output;
};
struct ActivationBackward {
  ActivationKind kind = ActivationKind::gelu;
  Tensor output_gradient, input, weights, input_gradient, weights_gradient;
};

// output = the sum of the given `inputs` (at least one) and the bias of each column. The output may be any of
// the inputs.
struct Add {
  std::array<Tensor, 4> inputs;
  Tensor bias, output;
};

// Maps element i of a rank's part to its random number in the whole tensor: first + i / run x stride + i %
// run, plus `skip` from element `turn` on.
struct Draws {
  std::int64_t first = 0, run = 1, stride = 1;
  std::int64_t turn = INT64_MAX, skip = 0;
  REHEARSE_ON_DEVICE std::int64_t number(std::int64_t i) const {
    return first + i / run * stride + i % run + (i < turn ? 0 : skip);
  }
};

// output = residual + mask (input + bias) / (1 - rate). philox(seed, number) decides whether an element is
// kept. The mask is the same on every device, and independent of how the work is split.
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

// Quantizes to FP8. `rows` = input / scale; `columns` is the same transposed; either may be missing.
// `maximum` (fp32, one element) is raised to the input's largest magnitude. `scale` (fp32, one element) is 1
// where missing. On the CPU, outputs are fp32.
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
