#include "cost/nccl/double_tree.h"

#include <algorithm>

namespace rehearse::nccl {

namespace {

std::vector<int> children_of(int node, int bit, int nodes) {
  const int half = bit / 2;
  if (node == 0) return half > 0 ? std::vector{half} : std::vector<int>{};
  if (half == 0) return {};
  std::vector<int> children = {node - half};
  int step = half;
  while (step > 0 && node + step >= nodes) step /= 2;
  if (step > 0) children.push_back(node + step);
  return children;
}

std::vector<int> neighbours_in_first(int node, int nodes) {
  int bit = 1;
  while (bit < nodes && (bit & node) == 0) bit *= 2;
  std::vector<int> neighbours = children_of(node, bit, nodes);
  if (node == 0) return neighbours;
  const int up = (node ^ bit) | (2 * bit);
  neighbours.push_back(up < nodes ? up : node ^ bit);
  return neighbours;
}

// Sends and receives in a tree, and those of the ring that the tree does not have.
double connections(int tree, int node, int nodes, bool ring) {
  const std::vector<int> neighbours = tree_neighbours(tree, node, nodes);
  const auto count = 2.0 * static_cast<double>(neighbours.size());
  if (!ring) return count;
  const auto is_new = [&](int other) { return std::ranges::find(neighbours, other) == neighbours.end(); };
  return count + (is_new((node + 1) % nodes) ? 1 : 0) + (is_new((node + nodes - 1) % nodes) ? 1 : 0);
}

}  // namespace

std::vector<int> tree_neighbours(int tree, int node, int nodes) {
  if (tree == 0) return neighbours_in_first(node, nodes);
  const bool mirrored = nodes % 2 == 0;
  const auto swap = [&](int at) { return mirrored ? nodes - 1 - at : (at + 1) % nodes; };
  std::vector<int> neighbours =
      neighbours_in_first(mirrored ? nodes - 1 - node : (node + nodes - 1) % nodes, nodes);
  std::ranges::transform(neighbours, neighbours.begin(), swap);
  return neighbours;
}

double most_pairs(int nodes, Shapes shapes) {
  if (nodes < 2) return 0;
  if (!shapes.tree) return shapes.ring ? 1 : 0;
  // A node with three neighbours in one tree has one in the other. That one is also beside it in the ring.
  const double all = 2 * (3 + 1) + (shapes.ring ? 2 + 1 : 0);
  double most = 0;
  for (int node = 0; node < nodes && most < all; ++node)
    most =
        std::max(most, connections(0, node, nodes, shapes.ring) + connections(1, node, nodes, shapes.ring));
  return most / 4;  // of two channels, in pairs
}

}  // namespace rehearse::nccl
