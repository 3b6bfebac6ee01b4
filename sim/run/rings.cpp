#include "run/rings.h"

#include <map>

namespace rehearse {

std::vector<std::pair<int, int>> ring_edges(const std::vector<int>& group, int gpus_per_node) {
  std::map<int, std::vector<int>> by_node;
  for (const int rank : group) by_node[rank / gpus_per_node].push_back(rank);
  std::vector<std::pair<int, int>> edges;
  if (by_node.size() < 2) return edges;
  for (auto node = by_node.begin(); node != by_node.end(); ++node) {
    const auto next = std::next(node) == by_node.end() ? by_node.begin() : std::next(node);
    for (std::size_t i = 0; i < node->second.size(); ++i)
      edges.emplace_back(node->second[i], next->second[i % next->second.size()]);
  }
  return edges;
}

std::vector<std::pair<int, int>> far_pairs(const std::vector<int>& group, int gpus_per_node) {
  std::vector<std::pair<int, int>> pairs;
  for (const int from : group)
    for (const int to : group)
      if (from / gpus_per_node != to / gpus_per_node) pairs.emplace_back(from, to);
  return pairs;
}

}  // namespace rehearse
