// How many GPUs of each node does a job get?
//
// A node that is one host is filled before the next. NVLink domains of many hosts (NVL72) are shared evenly,
// as schedulers do by blocks of hosts (Slurm's topology/block and --segment). Otherwise a group that spans
// two domains, although it fits into one, leaves the NVLink network.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"

namespace rehearse {

// GPUs a node, with the fewest nodes that can each give the job equally many whole hosts, up to twice as many
// nodes as the job fills. All GPUs of a node where a node is one host, and where no such share pays:
// - More nodes pay only where each gives more GPUs than the last of filled nodes would. NCCL opens as many
//   rings between nodes as the group's smallest number of NICs in a node.
// - Groups of `together` GPUs (tensor parallelism) that lie within filled nodes are not split.
int even_share(const Cluster& cluster, std::int64_t gpus, int together = 1);

// The cluster for a job that uses the first `gpus_per_node` GPUs of each node, with their NICs and their part
// of the host's CPUs. InputError unless these are whole hosts of a node.
Cluster with_share(Cluster cluster, int gpus_per_node);

}  // namespace rehearse
