#include "cluster/route.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "cluster/graph.h"

namespace rehearse {

namespace {

constexpr std::int64_t kManyGpus = 1LL << 31;

// The most GPUs that the cluster can have.
std::int64_t most_gpus(const Cluster& cluster) {
  return cluster.max_nodes == 0 ? kManyGpus : std::int64_t{cluster.max_nodes} * cluster.node.gpus;
}

void require_gpu(const Cluster& cluster, std::int64_t gpu) {
  const std::int64_t most = most_gpus(cluster);
  if (gpu >= 0 && gpu < most) return;
  throw InputError({cluster.name, "", fmt::format("GPUs are numbered from 0 to {}", most - 1),
                    fmt::format("asked for GPU {}", gpu), fmt::format("{}", gpu < 0 ? 0 : most - 1)});
}

std::vector<Hop> hops_inside(const Cluster& cluster, int from, int to) {
  const LinkGraph graph = make_node_graph(cluster.node);
  std::vector<Hop> hops;
  for (const Edge edge : shortest_route(graph, static_cast<Vertex>(from), static_cast<Vertex>(to))) {
    hops.push_back({fmt::format("{} to {}", graph[boost::source(edge, graph)].name,
                                graph[boost::target(edge, graph)].name),
                    graph[edge].kind, graph[edge].bandwidth, false});
  }
  return hops;
}

std::vector<Hop> hops_across(const Cluster& cluster, NicPlace from, NicPlace to) {
  const Node& node = cluster.node;
  const double rate = node.nic.bandwidth * std::max(1, node.nics / node.gpus);
  std::vector<Hop> hops = {{fmt::format("nic{} out", from.nic), node.nic_kind, rate, false}};
  for (const FabricLink& link : fabric_route(cluster, from, to)) {
    hops.push_back(
        {fmt::format("{} {}", link.name, link.up ? "up" : "down"), "fabric", link.bandwidth, link.shared});
  }
  hops.push_back({fmt::format("nic{} in", to.nic), node.nic_kind, rate, false});
  return hops;
}

}  // namespace

Route route_between(const Cluster& cluster, std::int64_t from, std::int64_t to) {
  require_gpu(cluster, from);
  require_gpu(cluster, to);
  if (from == to) {
    throw InputError({cluster.name, "", "a route joins two different GPUs",
                      fmt::format("from = {}, to = {}", from, to), ""});
  }
  const int gpus = cluster.node.gpus;
  const int a = static_cast<int>(from % gpus), b = static_cast<int>(to % gpus);
  Route route;
  route.crosses_nodes = from / gpus != to / gpus;
  route.port = route.crosses_nodes ? cluster.node.nic : cluster.node.gpu_link;
  route.hops = route.crosses_nodes
                   ? hops_across(cluster, {from / gpus, cluster.nic_of(a)}, {to / gpus, cluster.nic_of(b)})
                   : hops_inside(cluster, a, b);
  const auto slowest = std::min_element(route.hops.begin(), route.hops.end(),
                                        [](const Hop& x, const Hop& y) { return x.bandwidth < y.bandwidth; });
  route.port.bandwidth = slowest->bandwidth;
  return route;
}

}  // namespace rehearse
