// Which kernels does an op run of a block, and which of the block's matrices may go after each of them?
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

// Of F, B, I and W. What a block hands on (output, input gradient) and what a later op reads stays. B and I
// begin with what runs again, but where that is `again`, before those of all blocks that run again together.
struct BlockPasses {
  Pass forward, again, backward, backward_input, backward_weight;
};

BlockPasses make_passes(const Block& block, const std::vector<TensorPlace>& places, bool again_together);

}  // namespace rehearse
