// How long does the host take to launch a list of kernels that no CUDA graph holds whole?
#pragma once

#include <vector>

#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// Seconds. The host's time for a kernel is that of the framework's operation: chunks and calls of one
// operation are launched by a loop of its own, one right after the other. Kernels of graphed parts that
// follow each other are a graph, one operation (Transformer Engine's make_graphed_callables). Of a profile
// that this program measured, its own launches: every one takes as long.
double launches_s(const Profile& profile, const std::vector<Kernel>& kernels,
                  const GraphedParts& graphed = {});

// Seconds that the GPU idles in one run of a list that is run over and over: where the host waits for a
// kernel it has launched nothing that comes after, and the GPU follows it until it is ahead again. `seconds`
// by kernel. 0 where the host waits for none.
double stalls_s(const Profile& profile, const std::vector<Kernel>& kernels,
                const std::vector<double>& seconds, const GraphedParts& graphed = {});

// Seconds for those by which autograd adds each parameter's gradient to that of earlier microbatches
// (PyTorch, torch/csrc/autograd/functions/accumulate_grad.h); 0 where this program launches, whose GEMMs
// add to gradients themselves.
double accumulations_s(const Profile& profile, const Block& block);

}  // namespace rehearse
