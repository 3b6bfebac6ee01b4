// How do the blocks of a kernel run? One after the other, each one's threads as fibers that wait for each
// other at its barriers.
#pragma once

#include <functional>

#include "cuda_runtime_api.h"

namespace cuda_on_cpu {

// On the thread that calls it.
void run_blocks(const cudaLaunchConfig_t& config, const std::function<void()>& thread);

}  // namespace cuda_on_cpu
