// Which kernels of a block does an op run, and which of the block's matrices may be released after each?
#pragma once

#include <vector>

#include "launch/calls.h"
#include "launch/placement.h"
#include "plan/work.h"

namespace rehearse {

struct PassStep {
  const Kernel* kernel = nullptr;
  std::vector<TensorId> dies;  // matrices that nothing reads any more
};
using Pass = std::vector<PassStep>;

// Passes of F, B, I and W. Tensors that a block passes on (output, input gradient) and tensors that a later
// op reads stay. B and I begin with the recompute. If several blocks are recomputed together, their recompute
// is in `again`, and runs before the backwards of all of them.
struct BlockPasses {
  Pass forward, again, backward, backward_input, backward_weight;
};

BlockPasses make_passes(const Block& block, const std::vector<TensorPlace>& places, bool again_together);

}  // namespace rehearse
