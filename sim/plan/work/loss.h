// Which kernels make the loss of the logits, and their gradient?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

// Frameworks of PyTorch's FSDP compute it on whole rows as PyTorch does, all others over the ranks of the
// vocabulary as Megatron-LM does.
void add_loss(BlockBuilder& builder, const Plan& plan, const Shape& shape, TensorId logits);

}  // namespace rehearse
