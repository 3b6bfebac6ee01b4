// Which links does a message between two GPUs use, and how fast can it be?
#pragma once

#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace rehearse {

struct Hop {
  std::string link;  // "gpu3 to nvswitch", "nic3 out", "leaf0.rail3 up", ...
  std::string kind;
  double bandwidth = 0;  // bytes/s
  bool shared = false;   // an oversubscribed link of the fabric
};

struct Route {
  std::vector<Hop> hops;
  Port port;  // its slowest hop, and the latency from end to end
  bool crosses_nodes = false;
};

// GPUs are numbered node by node. InputError when one is not in the cluster, or `from` == `to`.
Route route_between(const Cluster& cluster, std::int64_t from, std::int64_t to);

}  // namespace rehearse
