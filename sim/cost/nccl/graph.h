// Which channels does NCCL's search find for a group, and which speed does it assume for them?
#pragma once

#include "cluster/cluster.h"
#include "cost/collectives.h"
#include "cost/nccl/constants.h"

namespace rehearse::nccl {

// All rates in bytes/s, as NCCL counts them: an NVLink of 25 GB/s counts 20 to 20.6.
struct Graph {
  Generation generation = Generation::hopper;
  Wire wire = Wire::nvlink;  // between the GPUs of a node
  int members = 1;
  int nodes = 1;
  double local = 1;           // members of one node
  double link_rate = 0;       // one GPU's way to the others of its node
  double channels = 1;        // of ring and tree
  double bus_rate = 0;        // of all channels
  double heads = 1;           // channels of NVLS
  double head_rate = 0;       // 0: the switches do not reduce
  double nic_rate = 0;        // one channel's across nodes
  double nics = 0;            // of a node, that the group's members send through, the mean
  double ring_nics = 0;       // of each node, that rings and trees go through
  double slow_network_s = 0;  // by how much the adapters are slower than InfiniBand
  bool ll128 = false;         // every wire keeps 128 bytes together
};

// Rules of NVIDIA/nccl src/graph/search.cc (speeds, doubling of channels), topo.h (rates of links) and
// tuning.cc (where LL128 is safe). Other vendors' GPUs take Hopper's rows without LL128 and NVLS.
Graph graph_of(const Constants& constants, const Cluster& cluster, const GroupShape& group);

// Of the adapters that NCCL's constants were measured on. What slower ones add counts; faster ones gain
// nothing.
constexpr double kInfinibandLatency = 3.3e-6;

constexpr double kChannelsAfterSearch = 2;  // channels are doubled once more

// Blocks that a collective launches, one a channel.
double blocks(const Graph& graph);

// The kind of link between the members: "nvswitch", "nvlink-bridge", ... inside a node, the kind of NIC
// across nodes.
const std::string& link_kind(const Cluster& cluster, const GroupShape& group);

Generation generation_of(const Cluster& cluster);

}  // namespace rehearse::nccl
