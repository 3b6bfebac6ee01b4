#include "cluster/export_simgrid.h"

#include <fmt/ostream.h>

#include <algorithm>

#include "cluster/graph.h"

namespace rehearse {

namespace {

double peak(const Gpu& gpu) {
  double most = 1;
  for (const auto& [precision, flops] : gpu.peak_flops) most = std::max(most, flops);
  return most;
}

double latency(const Cluster& cluster, PlaceKind a, PlaceKind b) {
  const auto is = [a, b](PlaceKind kind) { return (a == kind ? 1 : 0) + (b == kind ? 1 : 0); };
  if (is(PlaceKind::fabric) == 1 && is(PlaceKind::nic) == 1) return cluster.node.nic.latency / 2;
  return is(PlaceKind::nic) > 0 ? 0 : cluster.node.gpu_link.latency / 2 * is(PlaceKind::gpu);
}

}  // namespace

void write_simgrid(std::ostream& out, const Cluster& cluster, std::int64_t nodes) {
  const LinkGraph graph = make_graph(cluster, nodes);
  fmt::print(out,
             "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
             "<platform version=\"4.1\">\n  <config>\n    <prop id=\"network/model\" value=\"CM02\"/>\n"
             "    <prop id=\"network/crosstraffic\" value=\"0\"/>\n"
             "    <prop id=\"network/TCP-gamma\" value=\"0\"/>\n  </config>\n"
             "  <zone id=\"cluster\" routing=\"Dijkstra\">\n");
  for (Vertex vertex = 0; vertex < boost::num_vertices(graph); ++vertex) {
    if (graph[vertex].kind == PlaceKind::gpu) {
      fmt::print(out, "    <host id=\"{}\" speed=\"{:.0f}f\"/>\n", graph[vertex].name, peak(cluster.gpu));
    } else {
      fmt::print(out, "    <router id=\"{}\"/>\n", graph[vertex].name);
    }
  }
  std::string routes;
  std::size_t index = 0;
  for (Vertex from = 0; from < boost::num_vertices(graph); ++from) {
    for (const Edge edge : boost::make_iterator_range(boost::out_edges(from, graph))) {
      const Vertex to = boost::target(edge, graph);
      if (to < from) continue;
      fmt::print(out,
                 "    <link id=\"l{}\" bandwidth=\"{:.0f}Bps\" latency=\"{:g}s\" "
                 "sharing_policy=\"SPLITDUPLEX\"/>\n",
                 index, graph[edge].bandwidth, latency(cluster, graph[from].kind, graph[to].kind));
      for (const bool up : {true, false})
        routes += fmt::format(
            "    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\"><link_ctn id=\"l{}\" "
            "direction=\"{}\"/></route>\n",
            graph[up ? from : to].name, graph[up ? to : from].name, index, up ? "UP" : "DOWN");
      ++index;
    }
  }
  out << routes << "  </zone>\n</platform>\n";
}

}  // namespace rehearse
