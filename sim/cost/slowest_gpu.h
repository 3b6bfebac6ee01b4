// How much longer do GEMMs take on the slowest of a job's GPUs, for which all others wait?
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Of Profile::gpu_spread: the slowest of many is several of them behind.
inline constexpr double kMaxGpuSpread = 0.2;

// The largest of `count` standard normal variables, as expected (Blom 1958); 0 of one.
double expected_largest(int count);

// Times that of a GPU as the profile has it. What GPUs of a kind take for GEMMs that their power limits is
// taken for normally distributed around that, by Profile::gpu_spread; ranks on parts of one GPU share its
// pace.
double slowest_gpu(const Profile& profile, const Cluster& cluster, int ranks);

}  // namespace rehearse
