// Which kernels make the loss of the logits, and their gradient?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

// Whether each tensor-parallel rank gathers the logits of all and computes the loss of whole rows, and how
// many of its guesses are right (Aleph Alpha's Scaling).
bool gathers_logits(const Plan& plan);

// Frameworks of PyTorch's FSDP without tensor parallelism, and those that gather logits, compute it on whole
// rows as PyTorch does, all others over the ranks of the vocabulary: as Megatron-LM does, or where nothing is
// fused those of PyTorch's FSDP as its loss_parallel does.
void add_loss(BlockBuilder& builder, const Plan& plan, const Shape& shape, TensorId logits);

}  // namespace rehearse
