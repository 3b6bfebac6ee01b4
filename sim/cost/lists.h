// What does a gather of a list of tensors, one for each rank, cost beside what its bytes do?
//
// PyTorch's all_gather of lists copies each rank's part from the buffer that NCCL sees, by a kernel each
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, allgather).
#pragma once

#include <optional>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// Seconds of the GPU that `ranks` parts of `bytes` are copied.
double list_copies_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes);

// Seconds of the host: the collective's launch, and for each rank a view of the buffer and a copy's launch.
double list_host_s(const Profile& profile, int ranks);

// Seconds that kernels wait for a gather that `beside_s` of NCCL go on beside them (none: they wait for all
// of it besides): for the host, for the buffer to be set to zero (DeepSpeed, partition_parameters.py,
// _allgather_param), and for what is left of the copies when the host has launched them all. Copies within a
// GPU take multiprocessors (NVIDIA/nccl#2177), and their turn behind kernels launched before they can begin.
double list_wait_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes,
                   std::optional<double> beside_s);

// Seconds of the host that gathers `parameters` together and takes each from the list: for each and every
// rank a view of either tensor and a copy between them, in Python (_allgather_params).
double lists_apart_s(int ranks, int parameters);

}  // namespace rehearse
