// How many GPUs of each node does a job get?
//
// A node that is one host is filled before the next. NVLink domains of many hosts (NVL72) are shared out
// evenly, as schedulers do by blocks of hosts (Slurm's topology/block and --segment): a group that spans two
// domains where it fits into one leaves the NVLink network.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"

namespace rehearse {

// The fewest nodes, up to twice as many as the job fills, that can each give it equally many whole hosts:
// what each gives. All GPUs of a node where a node is one host, and where no such share pays:
// - More nodes pay only where each gives more than the last one of filled nodes would. NCCL opens as many
// rings
//   between nodes as the node has NICs of which a group has fewest.
// - Groups of `together` GPUs (tensor parallelism) that lie within filled nodes are not split.
int even_share(const Cluster& cluster, std::int64_t gpus, int together = 1);

// The cluster as a job meets it that takes the first `gpus_per_node` GPUs of each node, with the NICs and the
// part of the host's CPUs that are theirs. InputError unless these are whole hosts of a node.
Cluster with_share(Cluster cluster, int gpus_per_node);

}  // namespace rehearse
