// Which links do the simulated instances use, and how many of the ranks that an instance stands for share
// each?
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "plan/ranks.h"
#include "schedule/tasks.h"

namespace rehearse {

using LinkId = std::int32_t;

// Full-duplex ports: `out` and `in` are links of their own.
struct PortLinks {
  LinkId out = 0;
  LinkId in = 0;
};

// A folded instance stands for peers that move in lock step. Where `share` of them send through one physical
// NIC, the instance sees 1/share of its capacity, so that folded and unfolded runs agree.
struct Links {
  std::vector<double> capacity;   // by link, bytes/s, as the instance sees it
  std::vector<PortLinks> gpu;     // by instance: its port to the GPUs of its node
  std::vector<PortLinks> nic;     // by instance: its NIC; equals gpu where the node has none
  std::vector<double> nic_share;  // by instance
};

Links make_links(const Tasks& tasks, const Plan& plan, const Cluster& cluster);

// Does any of the ranks that the instances a and b stand for reach its peer only across nodes? Peers of a
// folded pair are the ranks with equal coordinates; the slowest of them sets the pace of all.
bool crosses_nodes(const Tasks& tasks, const RankGrid& grid, const Cluster& cluster, int a, int b);

}  // namespace rehearse
