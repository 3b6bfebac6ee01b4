// What lies on the GPUs of an experiment beside PyTorch's allocator?
#pragma once

#include <vector>

#include "run/iteration.h"

namespace rehearse {

// CUDA's context and the buffers of NCCL's communicators (cost/communicators.h) on each pipeline rank of
// `plan`, a plan of the experiment's model on its cluster and, where it has them, its stage_nodes.
std::vector<OutsideAllocator> outside_allocator(const Experiment& experiment, const Plan& plan,
                                                const Work& work);

}  // namespace rehearse
