// Which members of a group send to which across nodes?
#pragma once

#include <utility>
#include <vector>

namespace rehearse {

// In a ring: from each member to the member in the same place of the next node; none where the group keeps to
// one node.
std::vector<std::pair<int, int>> ring_edges(const std::vector<int>& group, int gpus_per_node);

// In an all-to-all: from each member to every one in another node, senders one after the other.
std::vector<std::pair<int, int>> far_pairs(const std::vector<int>& group, int gpus_per_node);

}  // namespace rehearse
