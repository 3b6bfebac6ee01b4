// What does a gather of a list of tensors, one for each rank, cost beside what its bytes do?
//
// PyTorch's all_gather of lists copies each rank's part from the buffer that NCCL sees, by a kernel each
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, allgather).
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Seconds of the GPU: a buffer of `bytes` is set to zero (DeepSpeed, partition_parameters.py,
// _allgather_param), and `ranks` parts of it are copied.
double list_copies_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes);

// Seconds of the host: the collective's launch, and for each rank a view of the buffer and a copy's launch.
double list_host_s(const Profile& profile, int ranks);

// Seconds of the host that gathers `parameters` together and takes each from the list: for each and every
// rank a view of either tensor and a copy between them, in Python (_allgather_params).
double lists_apart_s(int ranks, int parameters);

}  // namespace rehearse
