// How much does a gather of a list of tensors, one for each rank, cost beyond the transfer of its bytes?
//
// PyTorch's all_gather of lists copies each rank's part out of NCCL's buffer, with one kernel for each rank
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, allgather).
#pragma once

#include <optional>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// GPU seconds of copying `ranks` parts, `bytes` in all.
double list_copies_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes);

// Host seconds: the collective's launch, and for each rank a view of the buffer and the launch of a copy.
double list_host_s(const Profile& profile, int ranks);

// Seconds that kernels wait for a gather besides its NCCL time. They wait:
// - for the host;
// - for the buffer to be set to zero (DeepSpeed, partition_parameters.py, _allgather_param);
// - for the copies that remain when the host has launched them all.
//
// `beside_s`: NCCL seconds that run beside the kernels; none where the kernels wait for the whole gather.
// Copies within a GPU take multiprocessors (NVIDIA/nccl#2177), and can only begin after kernels that were
// launched before them.
double list_wait_s(const Profile& profile, const Cluster& cluster, int ranks, double bytes,
                   std::optional<double> beside_s);

// Host seconds to gather `parameters` together and take each from the list. Each parameter needs, for every
// rank, a view of either tensor and a copy between them, in Python (_allgather_params).
double lists_apart_s(int ranks, int parameters);

}  // namespace rehearse
