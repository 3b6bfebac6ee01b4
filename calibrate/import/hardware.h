// Under which name does the fit count collective tables measured on a cluster?
#pragma once

#include <string>

namespace rehearse::nccl {

// Names of the first clusters along "like" whose files differ: in anything, or in properties that matter for
// messages within a node. All tables of clusters with one name have one vote in the fit.
struct Hardware {
  std::string whole, node;
  const std::string& over(int nodes) const { return nodes == 1 ? node : whole; }
};

// Of a cluster that ships with the program, or of the file at that path.
Hardware hardware_of(const std::string& cluster);

}  // namespace rehearse::nccl
