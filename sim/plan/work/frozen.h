// Which kernels and tensors does a block lack, where parameters are held and not trained?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

// Removes backward kernels that lead to none of these gradients. Autograd runs no such kernel, since no
// tensor ahead of it requires a gradient.
void keep_backward_of(Block& block, const std::vector<TensorId>& gradients);

// The block with all of its parameters frozen, and nothing trained before it.
Block frozen(Block block);

}  // namespace rehearse
