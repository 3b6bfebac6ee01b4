#include "run/rings.h"

#include <algorithm>
#include <map>

namespace rehearse {

FarMessages ring_edges(const std::vector<int>& group, int gpus_per_node) {
  std::map<int, std::vector<int>> by_node;
  for (const int rank : group) by_node[rank / gpus_per_node].push_back(rank);
  FarMessages messages;
  if (by_node.size() < 2) return messages;
  std::size_t fewest = group.size();
  for (const auto& [node, members] : by_node) fewest = std::min(fewest, members.size());
  for (auto node = by_node.begin(); node != by_node.end(); ++node) {
    const auto next = std::next(node) == by_node.end() ? by_node.begin() : std::next(node);
    for (std::size_t i = 0; i < fewest; ++i) messages.pairs.emplace_back(node->second[i], next->second[i]);
  }
  return messages;
}

FarMessages far_pairs(const std::vector<int>& group, int gpus_per_node) {
  FarMessages messages;
  for (const int from : group)
    for (const int to : group)
      if (from / gpus_per_node != to / gpus_per_node) messages.pairs.emplace_back(from, to);
  return messages;
}

}  // namespace rehearse
