// Which members of a group send to which across nodes, and how much?
#pragma once

#include <utility>
#include <vector>

namespace rehearse {

struct FarMessages {
  std::vector<std::pair<int, int>> pairs;  // ranks that send to ranks, sender by sender
};

// In a ring: from each member to the member in the same place of the next node; none where the group keeps to
// one node. Rings go through as many members of each node as the smallest has (GroupShape::ring_nics), so
// that what enters a node leaves it.
FarMessages ring_edges(const std::vector<int>& group, int gpus_per_node);

// In an all-to-all: from each member to every one in another node, a share divided evenly.
FarMessages far_pairs(const std::vector<int>& group, int gpus_per_node);

}  // namespace rehearse
