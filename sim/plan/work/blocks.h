// The three blocks of a GPT or Llama: which kernels run, in which order.
#pragma once

#include "plan/work/builder.h"
#include "plan/work/recompute.h"
#include "plan/work/shape.h"

namespace rehearse {

// A residual branch before it is added: its output and the bias (-1: none) that goes with the sum.
struct Branch {
  TensorId output = -1;
  TensorId bias = -1;
};

// From normalised rows to the output projection. Selective recompute runs the core (all between q, k, v and
// the projection's input) again.
Branch attention(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                 TensorId input);

// From normalised rows to the down projection.
Branch mlp(BlockBuilder& builder, const Model& model, const Shape& shape, TensorId input);

Block embedding_block(const Model& model, const Plan& plan);
Block layer_block(const Model& model, const Plan& plan, LayerKind kind = LayerKind::planned);
Block head_block(const Model& model, const Plan& plan);

}  // namespace rehearse
