// How long do copies to the host and the optimizer's step on the CPU take?
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "plan/plan.h"

namespace rehearse {

// One direction of one GPU's host link. Its cost is the profile's for links of kind "host", else the rate of
// the cluster's link. InputError when the cluster has none on record.
double host_copy_s(const Profile& profile, const Cluster& cluster, double bytes);

// Adam on the CPUs of a node, which step the shards of all its GPUs at once. Each GPU gets its part of the
// rate (Ren et al. 2021, section 5.1). Clipping reads and writes the gradients once more before the step
// (DeepSpeed, runtime/zero/stage_1_and_2.py, unscale_and_clip_grads). InputError as above.
double cpu_step_s(const Cluster& cluster, const Plan& plan, double parameters);

}  // namespace rehearse
