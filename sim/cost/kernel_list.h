// Which kernels does a stage run for a microbatch, and what does each take by itself?
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "cost/kernel_time.h"
#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// In the order of the work; collectives as long as nothing hides them. Not among them is what no kernel of
// the Work names: casts of weights, and what waits for the host.
std::vector<KernelTime> kernel_list(const Work& work, int stage, const Plan& plan, const Cluster& cluster,
                                    const Profile& profile);

}  // namespace rehearse
