// Under which name do the tables of collectives count that were measured on a cluster?
#pragma once

#include <string>

namespace rehearse::nccl {

// Names of the first clusters along "like" whose files say more than "the same": as a whole, or of what
// messages within a node meet. The tables of clusters of one name are one voice of the fit.
struct Hardware {
  std::string whole, node;
  const std::string& over(int nodes) const { return nodes == 1 ? node : whole; }
};

// Of a cluster that ships with the program, or of the file at that path.
Hardware hardware_of(const std::string& cluster);

}  // namespace rehearse::nccl
