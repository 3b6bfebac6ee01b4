#include "cluster/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/json_reader.h"
#include "base/text_file.h"
#include "cluster/graph.h"

namespace rehearse {

namespace {

constexpr std::size_t kMostBytes = 16'000'000;

}  // namespace

bool is_topology_dump(const std::string& path) {
  return path.ends_with(".xml") || path.ends_with(".txt");
}

Cluster import_topology(const std::string& path) {
  const std::string text = read_text_file(path, kMostBytes);
  Cluster cluster = path.ends_with(".xml") ? import_nccl(text, path) : import_smi(text, path);
  cluster.name = std::filesystem::path(path).stem().string();
  cluster.max_nodes = 1;
  return cluster;
}

std::vector<int> nearest_nics(const Node& node) {
  if (node.nics == 0) return {};
  Cluster alone;
  alone.node = node;
  const LinkGraph graph = make_graph(alone, 1);
  std::map<std::string, Vertex> vertices;
  for (Vertex vertex = 0; vertex < boost::num_vertices(graph); ++vertex)
    vertices[graph[vertex].name] = vertex;
  std::vector<int> used(static_cast<std::size_t>(node.nics), 0), nearest;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    const std::vector<int> links = link_counts(graph, vertices.at(fmt::format("node0.gpu{}", gpu)));
    const auto cost = [&](int nic) {
      return std::pair(links[vertices.at(fmt::format("node0.nic{}", nic))],
                       used[static_cast<std::size_t>(nic)]);
    };
    int best = 0;
    for (int nic = 1; nic < node.nics; ++nic)
      if (cost(nic) < cost(best)) best = nic;
    ++used[static_cast<std::size_t>(best)];
    nearest.push_back(best);
  }
  return nearest;
}

void sum_gpu_links(Node& node) {
  std::vector<double> nvlink(static_cast<std::size_t>(node.gpus), 0), pcie(nvlink);
  bool switched = false;
  for (const NodeLink& link : node.wiring) {
    for (const auto& [end, other] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
      if (!is_gpu(end)) continue;
      const auto gpu = static_cast<std::size_t>(std::stoi(end.substr(3)));
      (link.kind == "nvlink" ? nvlink : pcie)[gpu] += link.bandwidth;
      switched = switched || other == "nvswitch";
    }
  }
  const double least = *std::min_element(nvlink.begin(), nvlink.end());
  node.gpu_link_kind = least == 0 ? "pcie" : switched ? "nvswitch" : "nvlink-mesh";
  node.gpu_link.bandwidth = least > 0 ? least : *std::min_element(pcie.begin(), pcie.end());
}

std::string write_imported(const Cluster& imported, const std::string& like) {
  const Node& node = imported.node;
  const auto rate = [](double bytes_per_s) { return fmt::format("{:g}GB/s", bytes_per_s * 1e-9); };
  Json wiring = Json::array();
  for (const NodeLink& link : node.wiring)
    wiring.push_back(
        {{"among", {link.from, link.to}}, {"kind", link.kind}, {"bandwidth", rate(link.bandwidth)}});
  Json nics = nullptr;
  if (node.nics > 0) nics = {{"count", node.nics}, {"of_gpu", node.nic_of_gpu}};
  // Whoever does not tell their kind does not tell their rate.
  if (!node.nic_kind.empty()) nics["bandwidth"] = rate(node.nic.bandwidth);
  const Json json = {
      {"schema", "rehearse.cluster/1"},
      {"like", like},
      {"source", imported.source},
      {"node",
       {{"gpus", node.gpus},
        {"gpu_link", {{"kind", node.gpu_link_kind}, {"bandwidth", rate(node.gpu_link.bandwidth)}}},
        {"nics", nics},
        {"wiring", wiring}}}};
  return json.dump(2) + "\n";
}

}  // namespace rehearse
