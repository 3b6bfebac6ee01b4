// How are keys computed that each stand for many tokens (DeepSeek-V4, 2026, section 2.3.1, equations 9 to
// 12)? For each window, a softmax over its tokens weighs their values, channel by channel.
#pragma once

#include <string>

#include "plan/work/blocks.h"

namespace rehearse {

struct Compressor {
  std::string name;
  std::int64_t tokens = 0;  // of a window
  std::int64_t width = 0;   // of a key
  bool overlaps = false;    // windows overlap by half: each token has values and weights for two of them
};

// From normalized rows to keys, which every tensor-parallel rank has whole.
TensorId compress(BlockBuilder& builder, const Shape& shape, const Compressor& what, TensorId rows);

// The compressed keys that each query's attention sees (equations 13 to 17), chosen by scores of separate
// keys.
TensorId choose_compressed(BlockBuilder& builder, const Model& model, const Shape& shape, TensorId rows,
                           TensorId queries);

// From normalized rows to the output projection.
Branch compressed_attention(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                            TensorId input);

// Model::streams copies of each row, and a mixture of them before the head.
TensorId spread_streams(BlockBuilder& builder, const Model& model, TensorId rows);
TensorId join_streams(BlockBuilder& builder, const Model& model, TensorId streams);

// A layer that reads and writes streams.
TensorId stream_layer(BlockBuilder& builder, const Model& model, const Plan& plan, LayerSort sort,
                      TensorId input);

}  // namespace rehearse
