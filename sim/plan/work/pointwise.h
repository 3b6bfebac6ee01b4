// Which kernels run between the GEMMs of a block: norms, residual sums, rotary positions?
#pragma once

#include <string>
#include <vector>

#include "plan/work/builder.h"

namespace rehearse {

// LayerNorm or RMSNorm over vectors of `width`. The backward kernels recompute mean and variance from the
// input: two numbers a row, which no count of activations includes. Parameters NAME_weight and, for
// LayerNorm, NAME_bias. `into_fp8`: writes the type that the next linear layer reads (Transformer Engine's
// LayerNormLinear). `groups` > 0: the vector is this rank's share, and that number of parts are normalized
// separately.
TensorId normalise(BlockBuilder& builder, const std::string& name, Norm norm, TensorId input,
                   std::int64_t width, bool into_fp8 = false, std::int64_t groups = 0);

// Adds rows of a learned table to rows of activations, in one kernel. The table's gradient is TABLE_gradient.
struct AddedTable {
  std::string table, kernel, output;  // names
  double elements = 0;                // of the table
};
TensorId add_table(BlockBuilder& builder, const AddedTable& added, TensorId rows);

// residual + dropout(branch + bias), one kernel as in Megatron-LM; `bias` (-1: none) is a parameter.
struct Residual {
  std::string name;
  TensorId residual = -1;
  TensorId branch = -1;
  TensorId bias = -1;
  bool dropout = false;
};
TensorId add_residual(BlockBuilder& builder, const Residual& sum, const std::string& output);

// Dropout with a mask of one byte an element.
TensorId drop_out(BlockBuilder& builder, const std::string& name, TensorId input, const std::string& output);
// The same for attention's probabilities.
TensorId drop_scores(BlockBuilder& builder, const std::string& name, TensorId scores,
                     const std::string& output);

// Rotates queries and keys by their positions. The backward kernel rotates back and needs neither.
std::vector<TensorId> rotate(BlockBuilder& builder, TensorId query, TensorId key);

}  // namespace rehearse
