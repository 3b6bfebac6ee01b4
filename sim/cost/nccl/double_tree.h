// Whom does a node exchange with in NCCL's two binary trees across nodes, and how many connections is that?
#pragma once

#include <vector>

namespace rehearse::nccl {

// Parent and children of `node` among `nodes` in `tree`, 0 or 1: the second mirrors the first where nodes are
// even in number, else is shifted by one, so that who is inside one tree is a leaf of the other (NVIDIA/nccl
// 2.10 to 2.30, src/graph/trees.cc, ncclGetBtree and ncclGetDtree).
std::vector<int> tree_neighbours(int tree, int node, int nodes);

// What a communicator connects.
struct Shapes {
  bool ring = false;
  bool tree = false;
};

// Connections of one channel to other nodes on the node that has most, in pairs of one to send and one to
// receive. Channels take turns between the two trees: their mean. A neighbour in the ring that is one in the
// tree too is connected once.
double most_pairs(int nodes, Shapes shapes);

}  // namespace rehearse::nccl
