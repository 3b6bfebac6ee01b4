// Machines and profiles that the tests of this folder share.
#pragma once

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse::test {

Cluster dgx_a100();       // 8 GPUs, NVLink 300 GB/s, 8 NICs of 25 GB/s
Cluster dgx_h100();       // 8 GPUs, NVLink 450 GB/s, 8 NICs of 50 GB/s
Profile round_numbers();  // ring and send on nvswitch and infiniband, in figures that are easy to check

// The first `members_of_a_node` GPUs of each of `nodes` nodes.
std::vector<int> ranks_on(const Cluster& cluster, int nodes, int members_of_a_node);

}  // namespace rehearse::test
