// How long does the host take to launch a list of kernels that no CUDA graph holds as a whole?
#pragma once

#include <vector>

#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// Seconds. The host's time for a kernel is that of the framework's operation. Chunks and calls of one
// operation are launched by its own loop, one right after the other. Consecutive kernels of graphed parts
// form one graph, which is one operation (Transformer Engine's make_graphed_callables). In a profile that
// this program measured, each launch takes the same time.
double launches_s(const Profile& profile, const std::vector<Kernel>& kernels,
                  const GraphedParts& graphed = {});

// Seconds that the GPU idles in one pass over a list that repeats. Where the host waits for a kernel, it has
// launched nothing after it. The GPU then waits for the host until the host is ahead again. `seconds`: by
// kernel. 0 where the host waits for no kernel.
double stalls_s(const Profile& profile, const std::vector<Kernel>& kernels,
                const std::vector<double>& seconds, const GraphedParts& graphed = {});

// Launch seconds of the kernels by which autograd adds each parameter's gradient to that of earlier
// microbatches (PyTorch, torch/csrc/autograd/functions/accumulate_grad.h). Zero where this program launches:
// its GEMMs add to the gradients themselves.
double accumulations_s(const Profile& profile, const Block& block);

}  // namespace rehearse
