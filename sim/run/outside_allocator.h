// How much memory do the GPUs of an experiment use beside PyTorch's allocator?
#pragma once

#include <vector>

#include "run/iteration.h"

namespace rehearse {

// CUDA's context and the buffers of NCCL's communicators (cost/communicators.h), on each pipeline rank of
// `plan`. This is a plan of the experiment's model on its cluster and, if it has them, its stage_nodes.
std::vector<OutsideAllocator> outside_allocator(const Experiment& experiment, const Plan& plan,
                                                const Work& work);

}  // namespace rehearse
