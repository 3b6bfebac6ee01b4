// With which nodes does a node exchange data in NCCL's two binary trees, and how many connections is that?
#pragma once

#include <vector>

namespace rehearse::nccl {

// Parent and children of `node` among `nodes` in `tree`, 0 or 1. For an even number of nodes the second tree
// mirrors the first, else it is shifted by one. So an inner node of one tree is a leaf of the other
// (NVIDIA/nccl 2.10 to 2.30, src/graph/trees.cc, ncclGetBtree and ncclGetDtree).
std::vector<int> tree_neighbours(int tree, int node, int nodes);

// Shapes that a communicator connects.
struct Shapes {
  bool ring = false;
  bool tree = false;
};

// Connections of one channel to other nodes, on the node with the most of them, in pairs of one to send and
// one to receive. Channels alternate between the two trees, so this is the mean. A neighbour in both ring and
// tree is connected once.
double most_pairs(int nodes, Shapes shapes);

}  // namespace rehearse::nccl
