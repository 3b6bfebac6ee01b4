// Linear layers split over tensor-parallel ranks, and the collectives around them.
//
// Column-parallel: every rank reads all inputs and makes its share of the outputs. Row-parallel: every rank
// reads its share of the inputs and makes a partial sum of all outputs (Shoeybi et al. 2019, section 3). With
// sequence parallelism the tensors in between are split along the sequence, and each all-reduce becomes a
// reduce-scatter and an all-gather (Korthikanti et al. 2022, section 4.2.2).
#pragma once

#include <string>
#include <vector>

#include "plan/work/builder.h"
#include "plan/work/shape.h"

namespace rehearse {

struct Output {
  std::string name;
  std::int64_t width = 0;    // on this rank
  double element_bytes = 0;  // 0: as the activations
};

// `input` has shape.rows rows of shape.hidden; the outputs, made by one GEMM and lying side by side, have
// shape.tokens rows. `weight` and `bias` (-1: none) are parameters of the block.
struct ColumnLinear {
  std::string name;
  TensorId input = -1;
  TensorId weight = -1;
  TensorId bias = -1;
  std::vector<Output> outputs = {};
};
std::vector<TensorId> column_linear(BlockBuilder& builder, const Shape& shape, const ColumnLinear& linear);

// From shape.tokens rows of `width` to shape.rows rows of shape.hidden, without the bias: it is added once,
// after the partial sums have met. Makes the parameter NAME_weight.
TensorId row_linear(BlockBuilder& builder, const Shape& shape, const std::string& name, TensorId input,
                    std::int64_t width);

// Sums the partial results of all ranks: shape.tokens rows in, shape.rows rows out, named `name`.
TensorId reduce_partial(BlockBuilder& builder, const Shape& shape, const std::string& name, TensorId partial);

}  // namespace rehearse
