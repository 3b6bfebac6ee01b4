// Which links carry what one GPU sends?
#pragma once

#include <vector>

#include "result/report.h"

namespace rehearse {

// Bytes that one GPU of the critical pipeline rank sends in an iteration, by the class of link that they
// leave it on.
struct LinkTraffic {
  double gpu_link = 0;  // to GPUs of its node: NVLink, PCIe
  double nic = 0;       // to other nodes
  double host = 0;      // to its host, and back
  LinkTraffic& operator+=(const LinkTraffic& other);
};

// For each line of the report's communication table. Collectives are rings, which leave a node through the
// NIC of each member in it (NCCL; Thakur et al. 2005): of n ranks, k of them in the node, a GPU sends 2
// (n-1)/n of an all-reduce's buffer and (n-1)/n of any other's, a k-th of it across nodes. An all-to-all
// sends as much to each of the others. Nodes are filled with ranks in order.
std::vector<LinkTraffic> link_traffic(const Report& report);

}  // namespace rehearse
