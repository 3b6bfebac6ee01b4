// Everything of a cluster as one graph: GPUs, switches, NICs, and the links that join them.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace rehearse {

enum class PlaceKind : std::uint8_t { gpu, inside, nic, fabric };  // inside: switches and CPUs of a node

struct Place {
  std::string name;  // "node3.gpu1", "node3.plx0", "node3.nic2", "leaf4.rail1", "core"
  PlaceKind kind = PlaceKind::gpu;
  std::int64_t node = -1;  // -1: between the nodes
  int level = 0;           // of a fabric switch, the core above the highest
};

// One direction of a link.
struct Line {
  std::string kind;      // "nvlink", "pcie", the NIC's kind, "fabric", ...
  double bandwidth = 0;  // bytes/s
};

using LinkGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Place, Line>;
using Vertex = LinkGraph::vertex_descriptor;
using Edge = LinkGraph::edge_descriptor;

// `nodes` nodes from the first on, with the whole fabric above them (all routers of a torus).
// InputError above 2^20 GPUs.
LinkGraph make_graph(const Cluster& cluster, std::int64_t nodes);

// One node by itself, without its NICs: what messages between its GPUs cross. GPU i is vertex i.
LinkGraph make_node_graph(const Node& node);

// Fewest links from `from` to `to`, of equally many the widest; empty when there is no way.
std::vector<Edge> shortest_route(const LinkGraph& graph, Vertex from, Vertex to);

// By vertex: how many links away from `from` it is; -1 where there is no way.
std::vector<int> link_counts(const LinkGraph& graph, Vertex from);

// What all of `sources` together can send to all of `sinks`, bytes/s: the maximum flow.
double max_flow(const LinkGraph& graph, const std::vector<Vertex>& sources, const std::vector<Vertex>& sinks);

// Bytes/s from the GPUs of the first half of `gpus` to those of the second. Nodes are numbered along the
// fabric, so for trees and tori (cut across their last dimension) no other half carries less.
double bisection_bandwidth(const Cluster& cluster, std::int64_t gpus);

}  // namespace rehearse
