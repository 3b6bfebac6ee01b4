#include "cluster/graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "cluster/wiring.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxGpus = 1 << 20;

class GraphBuilder {
 public:
  explicit GraphBuilder(const Cluster& cluster) : cluster_(cluster), wiring_(links_of(cluster.node)) {}

  LinkGraph run(std::int64_t nodes) {
    for (std::int64_t node = 0; node < nodes; ++node) add_node(node);
    if (cluster_.node.nics > 0 && nodes > 1) add_fabric(nodes);
    return std::move(graph_);
  }

 private:
  Vertex place(const Place& what) {
    const auto [found, is_new] = vertices_.try_emplace(what.name, 0);
    if (is_new) found->second = boost::add_vertex(what, graph_);
    return found->second;
  }

  void join(Vertex a, Vertex b, const Line& line) {
    boost::add_edge(a, b, line, graph_);
    boost::add_edge(b, a, line, graph_);
  }

  Vertex inside(std::int64_t node, const std::string& name) {
    const PlaceKind kind = is_gpu(name) ? PlaceKind::gpu : is_nic(name) ? PlaceKind::nic : PlaceKind::inside;
    return place({fmt::format("node{}.{}", node, name), kind, node, 0});
  }

  void add_node(std::int64_t node) {
    for (int gpu = 0; gpu < cluster_.node.gpus; ++gpu) inside(node, fmt::format("gpu{}", gpu));
    for (const NodeLink& link : wiring_)
      join(inside(node, link.from), inside(node, link.to), {link.kind, link.bandwidth});
  }

  Vertex nic(std::int64_t node, int index) { return inside(node, fmt::format("nic{}", index)); }

  void add_fabric(std::int64_t nodes) {
    const Fabric& fabric = cluster_.fabric;
    if (fabric.kind == FabricKind::torus) return add_torus(nodes);
    if (fabric.kind == FabricKind::dragonfly && fabric.minimal_routing) return add_dragonfly(nodes);
    for (std::int64_t node = 0; node < nodes; ++node) {
      for (int index = 0; index < cluster_.node.nics; ++index) add_tree(node, index);
    }
  }

  // One vertex represents all parallel switches of its place in the tree.
  void add_tree(std::int64_t node, int index) {
    const Fabric& fabric = cluster_.fabric;
    Vertex below = nic(node, index);
    Line line{cluster_.node.nic_kind, cluster_.node.nic.bandwidth};
    for (std::size_t level = 0; level <= fabric.levels.size(); ++level) {
      const bool top = level == fabric.levels.size();
      const std::string name = top ? "core" : switch_name(fabric, level, {node, index});
      const bool known = vertices_.contains(name);
      const Vertex above = place({name, PlaceKind::fabric, -1, static_cast<int>(level)});
      if (level == 0 || !joined_.contains({below, above})) join(below, above, line);
      joined_.insert({below, above});
      if (top || known) break;
      line = {"fabric", uplink_bandwidth(cluster_, level)};
      below = above;
    }
  }

  void add_dragonfly(std::int64_t nodes) {
    const FabricLevel& level = cluster_.fabric.levels.front();
    const std::int64_t groups = group_of(level, nodes - 1) + 1;
    std::vector<Vertex> switches;
    for (std::int64_t group = 0; group < groups; ++group)
      switches.push_back(place({fmt::format("{}{}", level.name, group), PlaceKind::fabric, -1, 0}));
    for (std::int64_t node = 0; node < nodes; ++node) {
      for (int index = 0; index < cluster_.node.nics; ++index)
        join(nic(node, index), switches[static_cast<std::size_t>(group_of(level, node))],
             {cluster_.node.nic_kind, cluster_.node.nic.bandwidth});
    }
    const double all = static_cast<double>(group_of(level, std::int64_t{cluster_.max_nodes} - 1));
    for (std::size_t a = 0; a < switches.size(); ++a) {
      for (std::size_t b = a + 1; b < switches.size(); ++b)
        join(switches[a], switches[b], {"fabric", uplink_bandwidth(cluster_, 0) / all});
    }
  }

  void add_torus(std::int64_t nodes) {
    const std::vector<int>& extents = cluster_.fabric.extents;
    std::vector<Vertex> routers;
    std::int64_t count = 1;
    for (const int extent : extents) count *= extent;
    for (std::int64_t i = 0; i < count; ++i)
      routers.push_back(place({fmt::format("router{}", i), PlaceKind::fabric, -1, 0}));
    for (std::int64_t node = 0; node < nodes; ++node) {
      for (int index = 0; index < cluster_.node.nics; ++index)
        join(nic(node, index), routers[static_cast<std::size_t>(node)],
             {cluster_.node.nic_kind, cluster_.node.nic.bandwidth});
    }
    std::int64_t stride = 1;
    for (const int extent : extents) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = i / stride % extent;
        const std::int64_t next = i + ((at + 1) % extent - at) * stride;
        // Around a ring of two both neighbours are the same: two links.
        if (next != i)
          join(routers[static_cast<std::size_t>(i)], routers[static_cast<std::size_t>(next)],
               {"fabric", cluster_.fabric.link_bandwidth});
      }
      stride *= extent;
    }
  }

  const Cluster& cluster_;
  std::vector<NodeLink> wiring_;
  LinkGraph graph_;
  std::map<std::string, Vertex> vertices_;
  std::set<std::pair<Vertex, Vertex>> joined_;
};

struct Reach {
  int links = std::numeric_limits<int>::max();
  double width = 0;
};

// Fewer links, then wider.
struct Nearer {
  bool operator()(const Reach& a, const Reach& b) const {
    return a.links != b.links ? a.links < b.links : a.width > b.width;
  }
};

struct OneFurther {
  Reach operator()(const Reach& reach, double bandwidth) const {
    if (reach.links == std::numeric_limits<int>::max()) return reach;
    return {reach.links + 1, std::min(reach.width, bandwidth)};
  }
};

// Each line has a reverse edge without capacity, as augmenting paths need it.
struct Pipe {
  double capacity = 0, residual = 0;
  boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>::edge_descriptor reverse;
};
using Pipes = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Pipe>;

void add_pipe(Pipes& pipes, std::size_t from, std::size_t to, double capacity) {
  const auto there = boost::add_edge(from, to, Pipe{capacity, 0, {}}, pipes).first;
  const auto back = boost::add_edge(to, from, Pipe{0, 0, {}}, pipes).first;
  pipes[there].reverse = back;
  pipes[back].reverse = there;
}

}  // namespace

LinkGraph make_graph(const Cluster& cluster, std::int64_t nodes) {
  if (nodes > kMaxGpus / cluster.node.gpus) {
    throw InputError({cluster.name, "", fmt::format("a graph is drawn of at most {} GPUs", kMaxGpus),
                      fmt::format("asked for {} nodes of {}", nodes, cluster.node.gpus),
                      fmt::format("{} nodes", kMaxGpus / cluster.node.gpus)});
  }
  return GraphBuilder(cluster).run(nodes);
}

LinkGraph make_node_graph(const Node& node) {
  LinkGraph graph;
  std::map<std::string, Vertex> vertices;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    const std::string name = fmt::format("gpu{}", gpu);
    vertices[name] = boost::add_vertex(Place{name, PlaceKind::gpu, 0, 0}, graph);
  }
  const auto place = [&](const std::string& name) {
    const auto [found, is_new] = vertices.try_emplace(name, 0);
    if (is_new) found->second = boost::add_vertex(Place{name, PlaceKind::inside, 0, 0}, graph);
    return found->second;
  };
  for (const NodeLink& link : links_of(node)) {
    if (is_nic(link.from) || is_nic(link.to)) continue;
    const Vertex a = place(link.from), b = place(link.to);
    boost::add_edge(a, b, Line{link.kind, link.bandwidth}, graph);
    boost::add_edge(b, a, Line{link.kind, link.bandwidth}, graph);
  }
  return graph;
}

std::vector<Edge> shortest_route(const LinkGraph& graph, Vertex from, Vertex to) {
  const std::size_t count = boost::num_vertices(graph);
  std::vector<Vertex> before(count);
  std::vector<Reach> reach(count);
  boost::dijkstra_shortest_paths(graph, from,
                                 boost::predecessor_map(before.data())
                                     .distance_map(reach.data())
                                     .weight_map(boost::get(&Line::bandwidth, graph))
                                     .distance_compare(Nearer{})
                                     .distance_combine(OneFurther{})
                                     .distance_inf(Reach{})
                                     .distance_zero(Reach{0, std::numeric_limits<double>::infinity()}));
  std::vector<Edge> route;
  if (from == to || reach[to].links == std::numeric_limits<int>::max()) return route;
  for (Vertex at = to; at != from; at = before[at]) {
    // Of parallel links the widest.
    std::optional<Edge> widest;
    for (const Edge edge : boost::make_iterator_range(boost::out_edges(before[at], graph))) {
      if (boost::target(edge, graph) == at && (!widest || graph[edge].bandwidth > graph[*widest].bandwidth))
        widest = edge;
    }
    route.push_back(*widest);
  }
  std::reverse(route.begin(), route.end());
  return route;
}

std::vector<int> link_counts(const LinkGraph& graph, Vertex from) {
  std::vector<int> counts(boost::num_vertices(graph), -1);
  counts[from] = 0;
  boost::breadth_first_search(
      graph, from,
      boost::visitor(boost::make_bfs_visitor(boost::record_distances(counts.data(), boost::on_tree_edge()))));
  return counts;
}

std::vector<Wire> wires_between(const Node& node, int from_gpu, int to_gpu) {
  const LinkGraph graph = make_node_graph(node);
  std::vector<Wire> wires;
  for (const Edge edge : shortest_route(graph, static_cast<Vertex>(from_gpu), static_cast<Vertex>(to_gpu)))
    wires.push_back({boost::source(edge, graph), boost::target(edge, graph), graph[edge].bandwidth});
  return wires;
}

double max_flow(const LinkGraph& graph, const std::vector<Vertex>& sources,
                const std::vector<Vertex>& sinks) {
  const std::size_t count = boost::num_vertices(graph), from_all = count, to_all = count + 1;
  Pipes pipes(count + 2);
  double everything = 0;
  for (const Edge edge : boost::make_iterator_range(boost::edges(graph))) {
    add_pipe(pipes, boost::source(edge, graph), boost::target(edge, graph), graph[edge].bandwidth);
    everything += graph[edge].bandwidth;
  }
  for (const Vertex source : sources) add_pipe(pipes, from_all, source, everything);
  for (const Vertex sink : sinks) add_pipe(pipes, sink, to_all, everything);
  std::vector<Pipes::edge_descriptor> last(count + 2);
  std::vector<boost::default_color_type> colours(count + 2);
  std::vector<long> distances(count + 2);
  boost::boykov_kolmogorov_max_flow(pipes, boost::get(&Pipe::capacity, pipes),
                                    boost::get(&Pipe::residual, pipes), boost::get(&Pipe::reverse, pipes),
                                    last.data(), colours.data(), distances.data(),
                                    boost::get(boost::vertex_index, pipes), from_all, to_all);
  // The function's own return value is truncated to an integer.
  double flow = 0;
  for (const auto edge : boost::make_iterator_range(boost::out_edges(from_all, pipes)))
    flow += pipes[edge].capacity - pipes[edge].residual;
  return flow;
}

}  // namespace rehearse
