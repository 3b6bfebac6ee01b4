// Which members of a group send to which across nodes, when they talk in a ring?
#pragma once

#include <utility>
#include <vector>

namespace rehearse {

// From each member to the member in the same place of the next node; none where the group keeps to one node.
std::vector<std::pair<int, int>> ring_edges(const std::vector<int>& group, int gpus_per_node);

}  // namespace rehearse
