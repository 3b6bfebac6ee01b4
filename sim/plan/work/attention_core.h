// Which parts do all ways of running FlashAttention share? Operands, results and the backward kernel.
#pragma once

#include "plan/work/blocks.h"

namespace rehearse {

inline constexpr double kLogSumExpBytes = 4;

// One call's operands and results; with context parallelism they are not the block's own.
struct Core {
  Attention what;
  KernelTensors operands;  // query, keys and values
  TensorId output = -1;    // of the first run
  TensorId output_for_backward = -1;
  TensorId log_sum_exp = -1;
  TensorId sinks = -1;
};

// Attention of this rank's queries over the same number of keys.
Attention attention_of(const Model& model, const Shape& shape, const Heads& heads);
double output_elements(const Shape& shape, const Heads& heads);

// Reads the gradient of core.output, `operands`, the output and its log-sum-exp. A head's sink gets its
// gradient from its share in the softmax of each row.
void attend_backward(BlockBuilder& builder, const Core& core, const KernelTensors& operands,
                     KernelTensors makes);

// All-to-all over the ranks of a context-parallel group. Each tensor is split by tokens before it and by
// heads after it (Exchange::rows_for_heads), or the reverse, with the same number of elements.
std::vector<TensorId> exchange_heads(BlockBuilder& builder, const std::string& name, Exchange what,
                                     const KernelTensors& from);

// Query, keys and values in their slots.
KernelTensors slotted(const Heads& heads);
// New gradients of the tensors, each in its slot.
KernelTensors new_gradients(BlockBuilder& builder, const KernelTensors& of);

// Attention over keys and values that go round the ranks of a context-parallel group.
TensorId ring_attention(BlockBuilder& builder, const Model& model, const Shape& shape, const Heads& heads,
                        bool rerun);

}  // namespace rehearse
