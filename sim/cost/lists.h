// What does an exchange of a list of tensors, one for each rank, cost beside what its bytes do?
//
// PyTorch's all_gather and reduce_scatter of lists copy each rank's part to or from the buffer that NCCL
// sees, by a kernel each (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, allgather and reduce_scatter).
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Seconds of the GPU: `ranks` copies of bytes / ranks each.
double list_copies_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes);

// Seconds of the host: the collective's launch, and for each rank a view of the buffer and a copy's launch.
double list_host_s(const Profile& profile, int ranks);

}  // namespace rehearse
