// What every way of running FlashAttention has in common: its operands, its results and its backward kernel.
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

// Of this rank's queries over as many keys.
Attention attention_of(const Model& model, const Shape& shape, const Heads& heads);
double output_elements(const Shape& shape, const Heads& heads);

// Reads the gradient of core.output, `operands`, the output and its log-sum-exp. A head's sink has what its
// rows took from the sum for gradient.
void attend_backward(BlockBuilder& builder, const Core& core, const KernelTensors& operands,
                     KernelTensors makes);

// All-to-all over the ranks of a context-parallel group: each tensor leaves split by tokens and arrives split
// by heads (Exchange::rows_for_heads), or the other way, in as many elements.
std::vector<TensorId> exchange_heads(BlockBuilder& builder, const std::string& name, Exchange what,
                                     const KernelTensors& from);

// Query, keys and values in their slots.
KernelTensors slotted(const Heads& heads);
// Of each tensor, in its slot.
KernelTensors new_gradients(BlockBuilder& builder, const KernelTensors& of);

// Attention over keys and values that go round the ranks of a context-parallel group.
TensorId ring_attention(BlockBuilder& builder, const Model& model, const Shape& shape, const Heads& heads,
                        bool rerun);

}  // namespace rehearse
