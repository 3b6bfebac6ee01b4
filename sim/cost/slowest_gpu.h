// How much longer do GEMMs take on the slowest GPU of a job, for which all others wait?
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Limit of Profile::gpu_spread. The slowest of many GPUs is several times this spread behind.
inline constexpr double kMaxGpuSpread = 0.2;

// The expected largest of `count` standard normal variables (Blom 1958); 0 for one.
double expected_largest(int count);

// GEMM time on the slowest GPU over GEMM time in the profile. GEMM times of GPUs at their power limit are
// assumed normally distributed around the profile's, with Profile::gpu_spread. Ranks on parts of one GPU
// share its pace.
double slowest_gpu(const Profile& profile, const Cluster& cluster, int ranks);

}  // namespace rehearse
