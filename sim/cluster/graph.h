// A cluster as one graph: GPUs, switches, NICs, and the links between them.
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

// The first `nodes` nodes, with the whole fabric above them (all routers of a torus). InputError above 2^20
// GPUs.
LinkGraph make_graph(const Cluster& cluster, std::int64_t nodes);

// One node by itself, without its NICs: the links that messages between its GPUs use. GPU i is vertex i.
LinkGraph make_node_graph(const Node& node);

// The route with fewest links from `from` to `to`, the widest of equally long ones; empty without a route.
std::vector<Edge> shortest_route(const LinkGraph& graph, Vertex from, Vertex to);

// By vertex: its distance from `from` in links; -1 without a route.
std::vector<int> link_counts(const LinkGraph& graph, Vertex from);

// Bytes/s that all of `sources` together can send to all of `sinks`: the maximum flow.
double max_flow(const LinkGraph& graph, const std::vector<Vertex>& sources, const std::vector<Vertex>& sinks);

// Bytes/s from the first half of `gpus` to the second. Nodes are numbered along the fabric, so in trees and
// tori (cut across their last dimension) no other bisection has less. Time and memory grow with the number of
// switches alone, except in a torus.
double bisection_bandwidth(const Cluster& cluster, std::int64_t gpus);

// The same in a graph: from the first `half` of its first `gpus` GPUs to the others of them.
double bisection_of(const LinkGraph& graph, std::int64_t half, std::int64_t gpus);

}  // namespace rehearse
