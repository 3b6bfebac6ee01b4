// Which members of a group send to which across nodes, and how much?
#pragma once

#include <utility>
#include <vector>

namespace rehearse {

struct FarMessages {
  std::vector<std::pair<int, int>> pairs;  // ranks that send to ranks, sender by sender
};

// In a ring, each member sends to the member in the same place of the next node. There are no pairs in a
// group within one node. Rings go through as many members of each node as the smallest node has
// (GroupShape::ring_nics), so the bytes that enter a node also leave it.
FarMessages ring_edges(const std::vector<int>& group, int gpus_per_node);

// In an all-to-all, each member sends to every member in another node, an equal share each.
FarMessages far_pairs(const std::vector<int>& group, int gpus_per_node);

}  // namespace rehearse
