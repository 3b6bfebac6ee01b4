// Which kernels does a stage run for a microbatch, and how long does each take by itself?
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "cost/kernel_time.h"
#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// Kernels come in the order of the work. Collectives have their full time, as if nothing hid them. Weight
// casts and waits for the host are missing, because no kernel of the Work names them.
std::vector<KernelTime> kernel_list(const Work& work, int stage, const Plan& plan, const Cluster& cluster,
                                    const Profile& profile);

}  // namespace rehearse
