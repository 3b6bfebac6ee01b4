// Which links carry the bytes that one GPU sends?
#pragma once

#include <vector>

#include "result/report.h"

namespace rehearse {

// Bytes that one GPU of the critical pipeline rank sends in an iteration, by class of link.
struct LinkTraffic {
  double gpu_link = 0;  // to GPUs of its node: NVLink, PCIe
  double nic = 0;       // to other nodes
  double host = 0;      // to its host, and back
  LinkTraffic& operator+=(const LinkTraffic& other);
};

// One entry for each line of the report's communication table. Collectives are rings, which leave a node
// through the NIC of each member in it (NCCL; Thakur et al. 2005). With n ranks, k of them in the node, a GPU
// sends 2 (n-1)/n of an all-reduce's buffer and (n-1)/n of any other's, 1/k of that across nodes. An
// all-to-all sends equally much to each other rank. Nodes are filled with ranks in order.
std::vector<LinkTraffic> link_traffic(const Report& report);

}  // namespace rehearse
