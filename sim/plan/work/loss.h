// Which kernels compute the loss and its gradient from the logits?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

// Whether each tensor-parallel rank gathers all logits, and computes the loss of whole rows and its number of
// correct guesses (Aleph Alpha's Scaling).
bool gathers_logits(const Plan& plan);

// The loss is computed in one of three ways:
// - on whole rows as in PyTorch: frameworks of PyTorch's FSDP without tensor parallelism, and those that
//   gather logits;
// - by PyTorch's loss_parallel: frameworks of PyTorch's FSDP where nothing is fused;
// - over the ranks of the vocabulary as in Megatron-LM: all others.
void add_loss(BlockBuilder& builder, const Plan& plan, const Shape& shape, TensorId logits);

}  // namespace rehearse
