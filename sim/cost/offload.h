// How long do copies to the host and the optimizer's step on the CPU take?
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"
#include "plan/plan.h"

namespace rehearse {

// One direction of one GPU's host link: as the profile's links of kind "host" were measured, else at the
// rate of the cluster's. InputError when the cluster has none on record.
double host_copy_s(const Profile& profile, const Cluster& cluster, double bytes);

// Adam on the CPUs of a node, which step the shards of all its GPUs at once: each GPU gets its part of the
// rate (Ren et al. 2021, section 5.1). Gradients that are clipped are read and written once more before
// (DeepSpeed, runtime/zero/stage_1_and_2.py, unscale_and_clip_grads). InputError as above.
double cpu_step_s(const Cluster& cluster, const Plan& plan, double parameters);

}  // namespace rehearse
