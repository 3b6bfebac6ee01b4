// Which kernels replace attention in layers with a recurrence? All of these layers divide their heads over
// ranks, have a short convolution, and scan the tokens in chunks.
//
// Nobody timed these kernels: each is marked unmeasured, which widens the error bar (sim/run/band.h).
#pragma once

#include <string>
#include <vector>

#include "plan/work/blocks.h"

namespace rehearse {

// One rank's share of a recurrence: tensor-parallel ranks divide the heads.
struct RecurrentShare {
  const Recurrence& of;
  std::int64_t tp = 1;
  std::int64_t tokens = 0;

  std::int64_t key_heads() const { return of.key_heads / tp; }
  std::int64_t heads() const { return of.value_heads / tp; }
  std::int64_t keys() const { return of.keys() / tp; }
  std::int64_t values() const { return of.values() / tp; }
  std::int64_t chunks() const { return (tokens + of.chunk - 1) / of.chunk; }
  double per_token(std::int64_t width) const { return Shape::elements(tokens, width); }

  // Scores, states and outputs of chunks, of a head with keys of its own.
  Scan scan() const {
    return {tokens, heads(), of.value_head_dim, heads(), of.key_head_dim, of.chunk, false, true};
  }
  double state_elements() const {
    return static_cast<double>(chunks()) * Shape::elements(heads() * of.key_head_dim, of.value_head_dim);
  }
};

// Causal convolution along the sequence, with its activation. `input` has all `outputs` side by side. Each
// channel has its own weights and bias (causal_conv1d).
struct ShortConvolution {
  TensorId input = -1;
  std::int64_t reach = 4;
  bool bias = false;
  std::vector<std::pair<std::string, std::int64_t>> outputs = {};  // name and width
};
std::vector<TensorId> convolve(BlockBuilder& builder, const RecurrentShare& share,
                               const ShortConvolution& convolution);

// Gradients of parameters that kernels of activations summed in fp32 over the tokens of a microbatch.
std::vector<TensorId> sums_of(BlockBuilder& builder, const std::vector<TensorId>& parameters);
void add_sums(BlockBuilder& builder, const std::string& name, const std::vector<TensorId>& sums,
              const std::vector<TensorId>& parameters);

// The branch of each kind of recurrence; `input` are normalized rows.
Branch delta_rule(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                  TensorId input);
Branch lightning_attention(BlockBuilder& builder, const Model& model, const Shape& shape, TensorId input);
Branch selective_scan(BlockBuilder& builder, const Model& model, const Shape& shape, TensorId input);
Branch short_convolution(BlockBuilder& builder, const Model& model, const Shape& shape, TensorId input);

}  // namespace rehearse
