// Maximum flow between the halves of a cluster. Nodes below one switch, on one side of the cut, are alike,
// and so are switches above equally many such nodes: any of them can be exchanged without changing the graph.
// Some largest flow then is equal on all of them, so that one vertex with the sum of their links stands for
// them (a quotient of the graph). A fabric of any size has few kinds of switches: full ones of each side, the
// one that is cut, the last one.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cluster/graph.h"
#include "cluster/wiring.h"

namespace rehearse {

namespace {

// Sides of the cut, and the last node where some of its GPUs do not count.
enum NodeKind : int { kFirst, kSecond, kLast };
using Kind = int;
using Content =
    std::map<Kind, std::int64_t>;  // kinds of nodes or switches below a switch, and how many of each

struct Halves {
  std::int64_t nodes = 0;
  std::int64_t last_gpus = 0;  // of the last node that count; 0: all
  std::int64_t first() const { return nodes / 2; }

  // The nodes from `begin` up to `end`.
  Content content(std::int64_t begin, std::int64_t end) const {
    Content found;
    const std::int64_t whole = nodes - (last_gpus > 0 ? 1 : 0);
    const auto add = [&](NodeKind kind, std::int64_t from, std::int64_t to) {
      const std::int64_t count = std::min(end, to) - std::max(begin, from);
      if (count > 0) found[kind] = count;
    };
    add(kFirst, 0, first());
    add(kSecond, first(), whole);
    add(kLast, whole, nodes);
    return found;
  }
};

// By level: the distinct contents of its switches. The last level is the core, one switch.
std::vector<std::vector<Content>> switches_of(const Fabric& fabric, const Halves& halves) {
  std::vector<std::vector<Content>> kinds;
  std::vector<Kind> below;  // by switch of the level below
  for (std::size_t level = 0; level <= fabric.levels.size(); ++level) {
    const bool is_core = level == fabric.levels.size();
    const std::int64_t nodes = is_core ? halves.nodes : fabric.levels[level].nodes;
    const std::int64_t count = is_core ? 1 : group_of(fabric.levels[level], halves.nodes - 1) + 1;
    std::vector<Content> contents(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; level == 0 && i < count; ++i)
      contents[static_cast<std::size_t>(i)] = halves.content(i * nodes, (i + 1) * nodes);
    for (std::size_t i = 0; i < below.size(); ++i) {
      const std::int64_t first = static_cast<std::int64_t>(i) * fabric.levels[level - 1].nodes;
      ++contents[is_core ? 0 : static_cast<std::size_t>(group_of(fabric.levels[level], first))][below[i]];
    }
    std::map<Content, Kind> known;
    below.clear();
    for (const Content& content : contents)
      below.push_back(known.try_emplace(content, static_cast<Kind>(known.size())).first->second);
    std::vector<Content>& of_level = kinds.emplace_back(known.size());
    for (const auto& [content, kind] : known) of_level[static_cast<std::size_t>(kind)] = content;
  }
  return kinds;
}

class Quotient {
 public:
  Quotient(const Cluster& cluster, const Halves& halves)
      : cluster_(cluster),
        halves_(halves),
        wiring_(links_of(cluster.node)),
        kinds_(switches_of(cluster.fabric, halves)) {}

  double max_flow() {
    const Fabric& fabric = cluster_.fabric;
    if (fabric.kind == FabricKind::dragonfly && fabric.minimal_routing)
      add_groups();
    else
      add_switch(fabric.levels.size(), 0, 1, {});
    if (first_.empty() || second_.empty()) return 0;
    return rehearse::max_flow(graph_, first_, second_);
  }

 private:
  Vertex add(PlaceKind kind) { return boost::add_vertex(Place{"", kind, -1, 0}, graph_); }

  void join(Vertex a, Vertex b, double bandwidth) {
    boost::add_edge(a, b, Line{"", bandwidth}, graph_);
    boost::add_edge(b, a, Line{"", bandwidth}, graph_);
  }

  // `count` switches of a kind, with everything below them, below the switch or switches `above`. Returns
  // their vertices: one for each rail.
  std::vector<Vertex> add_switch(std::size_t level, Kind kind, double count,
                                 const std::vector<Vertex>& above) {
    const bool has_rails = level == 0 && !cluster_.fabric.levels.empty() && cluster_.fabric.rails;
    std::vector<Vertex> switches;
    for (int rail = 0; rail < (has_rails ? cluster_.node.nics : 1); ++rail)
      switches.push_back(add(PlaceKind::fabric));
    for (const Vertex own : switches)
      for (const Vertex each : above) join(own, each, count * uplink_bandwidth(cluster_, level));
    for (const auto& [below, many] : kinds_[level][static_cast<std::size_t>(kind)]) {
      const double all = count * static_cast<double>(many);
      if (level == 0)
        add_node(static_cast<NodeKind>(below), all, switches);
      else
        add_switch(level - 1, below, all, switches);
    }
    return switches;
  }

  void add_node(NodeKind kind, double count, const std::vector<Vertex>& switches) {
    std::map<std::string, Vertex> places;
    const auto place = [&](const std::string& name) {
      const PlaceKind of = is_gpu(name) ? PlaceKind::gpu : is_nic(name) ? PlaceKind::nic : PlaceKind::inside;
      const auto [found, is_new] = places.try_emplace(name, 0);
      if (is_new) found->second = add(of);
      return found->second;
    };
    const std::int64_t gpus = kind == kLast ? halves_.last_gpus : cluster_.node.gpus;
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu)
      (kind == kFirst ? first_ : second_).push_back(place(fmt::format("gpu{}", gpu)));
    for (const NodeLink& link : wiring_) join(place(link.from), place(link.to), count * link.bandwidth);
    for (int nic = 0; nic < cluster_.node.nics; ++nic)
      join(place(fmt::format("nic{}", nic)),
           switches[switches.size() > 1 ? static_cast<std::size_t>(nic) : 0],
           count * cluster_.node.nic.bandwidth);
  }

  // Dragonfly with direct links: each group has one to every other.
  void add_groups() {
    const FabricLevel& level = cluster_.fabric.levels.front();
    const double link = uplink_bandwidth(cluster_, 0) /
                        static_cast<double>(group_of(level, std::int64_t{cluster_.max_nodes} - 1));
    std::vector<std::pair<Vertex, double>> groups;
    for (const auto& [kind, many] : kinds_.back().front())
      groups.emplace_back(add_switch(0, kind, static_cast<double>(many), {}).front(),
                          static_cast<double>(many));
    for (std::size_t a = 0; a < groups.size(); ++a)
      for (std::size_t b = a + 1; b < groups.size(); ++b)
        join(groups[a].first, groups[b].first, groups[a].second * groups[b].second * link);
  }

  const Cluster& cluster_;
  const Halves& halves_;
  std::vector<NodeLink> wiring_;
  std::vector<std::vector<Content>> kinds_;
  LinkGraph graph_;
  std::vector<Vertex> first_, second_;
};

}  // namespace

double bisection_of(const LinkGraph& graph, std::int64_t half, std::int64_t gpus) {
  std::vector<Vertex> first, second;
  std::int64_t index = 0;
  for (const Vertex vertex : boost::make_iterator_range(boost::vertices(graph))) {
    if (graph[vertex].kind != PlaceKind::gpu || index == gpus) continue;
    (index < half ? first : second).push_back(vertex);
    ++index;
  }
  return first.empty() || second.empty() ? 0 : max_flow(graph, first, second);
}

double bisection_bandwidth(const Cluster& cluster, std::int64_t gpus) {
  const std::int64_t per_node = cluster.node.gpus, nodes = (gpus + per_node - 1) / per_node;
  if (nodes == 1) return bisection_of(make_node_graph(cluster.node), gpus / 2, gpus);
  if (cluster.fabric.kind == FabricKind::torus || cluster.node.nics == 0)
    return bisection_of(make_graph(cluster, nodes), nodes / 2 * per_node, gpus);
  const Halves halves{nodes, gpus % per_node};
  return Quotient(cluster, halves).max_flow();
}

}  // namespace rehearse
