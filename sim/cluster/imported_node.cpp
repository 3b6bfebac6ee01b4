#include "cluster/imported_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "cluster/graph.h"

namespace rehearse {

namespace {

bool is_gpu_fabric(const std::string& kind) {
  return kind == "nvlink" || kind == "xgmi";
}

std::size_t number_of(const std::string& device) {
  return static_cast<std::size_t>(std::stoi(device.substr(3)));
}

// Total bandwidth of the links of a kind for each GPU, bytes/s.
std::vector<double> rates_by_gpu(const Node& node, bool of_fabric) {
  std::vector<double> rates(static_cast<std::size_t>(node.gpus), 0);
  for (const NodeLink& link : node.wiring) {
    for (const std::string& end : {link.from, link.to})
      if (is_gpu(end) && is_gpu_fabric(link.kind) == of_fabric) rates[number_of(end)] += link.bandwidth;
  }
  return rates;
}

// Sets of GPUs that GPU links connect, each in ascending order.
std::vector<std::vector<std::size_t>> islands_of(const Node& node) {
  std::map<std::string, std::string> parent;
  const auto root = [&](std::string name) {
    while (parent.contains(name) && parent.at(name) != name) name = parent.at(name);
    return name;
  };
  for (const NodeLink& link : node.wiring) {
    if (!is_gpu_fabric(link.kind)) continue;
    const std::string a = root(link.from), b = root(link.to);
    parent.try_emplace(a, a);
    parent[b] = a;
  }
  std::map<std::string, std::vector<std::size_t>> sets;
  for (int gpu = 0; gpu < node.gpus; ++gpu)
    sets[root(fmt::format("gpu{}", gpu))].push_back(static_cast<std::size_t>(gpu));
  std::vector<std::vector<std::size_t>> islands;
  for (auto& [name, gpus] : sets) islands.push_back(std::move(gpus));
  std::ranges::sort(islands);
  return islands;
}

std::string gpu_names(const std::vector<std::size_t>& gpus) {
  std::vector<std::string> names;
  for (const std::size_t gpu : gpus) names.push_back(fmt::format("GPU{}", gpu));
  return join(names);
}

// Whether all sets have the same size and consecutive numbers: NVLink bridges.
bool are_even(const std::vector<std::vector<std::size_t>>& islands) {
  const std::size_t size = islands.front().size();
  return size > 1 && std::ranges::all_of(islands, [&](const auto& island) {
           return island.size() == size && island.back() - island.front() + 1 == size &&
                  island.front() % size == 0;
         });
}

double least_of(const std::vector<double>& rates, const std::vector<std::size_t>& gpus) {
  double least = rates[gpus.front()];
  for (const std::size_t gpu : gpus) least = std::min(least, rates[gpu]);
  return least;
}

void note_slower(ImportedNode& imported, const std::vector<double>& rates,
                 const std::vector<std::size_t>& gpus) {
  const double most = *std::ranges::max_element(rates);
  std::vector<std::size_t> slower;
  for (const std::size_t gpu : gpus)
    if (rates[gpu] < most) slower.push_back(gpu);
  if (!slower.empty() && imported.cluster.node.gpu_link_kind == "nvswitch")
    imported.notes.push_back(
        fmt::format("warning: {} has fewer NVLinks than the others, {:g} instead of {:g} GB/s: this rate is "
                    "used for the whole node",
                    gpu_names(slower), least_of(rates, slower) * 1e-9, most * 1e-9));
}

// Adds links between its GPUs as in `like`: a switch, or direct wiring.
void add_gpu_links(Node& node, const Cluster& like) {
  node.gpu_link_kind = like.node.gpu_link_kind;
  node.gpu_link = like.node.gpu_link;
  if (like.node.gpu_link_kind == "pcie") return;
  for (const NodeLink& link : links_of(like.node)) {
    const auto there = [&](const std::string& end) {
      return !is_nic(end) && (!is_gpu(end) || number_of(end) < static_cast<std::size_t>(node.gpus));
    };
    const bool of_cpu = link.kind == "pcie" || link.kind == "cpu";
    if (there(link.from) && there(link.to) && !of_cpu) node.wiring.push_back(link);
  }
}

bool has_gpu_links(const Node& node) {
  return std::ranges::any_of(node.wiring, [](const NodeLink& link) { return is_gpu_fabric(link.kind); });
}

std::string parent_of(const Node& node, const std::string& gpu) {
  for (const NodeLink& link : node.wiring) {
    if (link.kind != "pcie") continue;
    if (link.to == gpu) return link.from;
    if (link.from == gpu) return link.to;
  }
  return gpu;
}

// Adds as many NICs a GPU as `like` has, below the same switch or CPU as their GPU.
void add_nics(ImportedNode& imported, const Cluster& like) {
  Node& node = imported.cluster.node;
  node.nics =
      static_cast<int>(std::max<std::int64_t>(1, std::int64_t{like.node.nics} * node.gpus / like.node.gpus));
  for (int nic = 0; nic < node.nics; ++nic) {
    const auto gpu = std::int64_t{nic} * node.gpus / node.nics;
    const std::string name = fmt::format("gpu{}", gpu);
    node.wiring.push_back(
        {parent_of(node, name), fmt::format("nic{}", nic), "pcie", like.node.nic.bandwidth});
  }
  imported.notes.push_back(fmt::format("the file names no NICs: {} as {} has them", node.nics, like.name));
}

void drop_nics(ImportedNode& imported, const Cluster& like) {
  Node& node = imported.cluster.node;
  imported.notes.push_back(
      fmt::format("warning: the file names {} NICs, but {} has none to give their rate: they are ignored, "
                  "and the cluster has one node; --like a cluster with NICs keeps them",
                  node.nics, like.name));
  std::erase_if(node.wiring, [](const NodeLink& link) { return is_nic(link.from) || is_nic(link.to); });
  node.nics = 0;
  node.nic_of_gpu.clear();
}

void complete_nics(ImportedNode& imported, const Cluster& like) {
  Node& node = imported.cluster.node;
  if (node.nics > 0 && like.node.nics == 0) drop_nics(imported, like);
  if (like.node.nics == 0) return;
  const bool named = node.nics > 0;
  if (!named) add_nics(imported, like);
  if (named && std::int64_t{node.nics} * like.node.gpus != std::int64_t{like.node.nics} * node.gpus)
    imported.notes.push_back(fmt::format("the file names {} NICs for {} GPUs, {} has {} for {}: all are kept",
                                         node.nics, node.gpus, like.name, like.node.nics, like.node.gpus));
  const double told = node.nic.bandwidth;
  node.nic = like.node.nic;
  if (imported.tells_nic_rate && named) node.nic.bandwidth = told;
  node.nic_kind = like.node.nic_kind;
  node.nic_limits = like.node.nic_limits;
  node.nic_of_gpu = nearest_nics(node);
}

// A host of an NVLink domain lists only its own GPUs; messages use the whole domain.
void keep_domain(ImportedNode& imported, const Cluster& like) {
  const Node host = imported.cluster.node;
  imported.part_of_domain = true;
  imported.cluster.node = like.node;
  imported.notes.push_back(fmt::format(
      "one host of {} GPUs: the NVLink domain of {} GPUs and the {} NICs of {} are kept; the file names "
      "{} NICs a host",
      host.gpus, like.node.gpus, like.node.nics, like.name, host.nics));
  if (host.gpu_link_kind == "pcie") {
    imported.notes.push_back(
        fmt::format("warning: the file names no NVLinks; those of {} are used", like.name));
    return;
  }
  imported.cluster.node.gpu_link.bandwidth = host.gpu_link.bandwidth;
  if (host.gpu_link.bandwidth != like.node.gpu_link.bandwidth)
    imported.notes.push_back(fmt::format("warning: NVLink of {:g} GB/s, {} has {:g}",
                                         host.gpu_link.bandwidth * 1e-9, like.name,
                                         like.node.gpu_link.bandwidth * 1e-9));
}

bool is_host_of_domain(const Node& node, const Cluster& like) {
  return like.nccl.host_gpus > 0 && node.gpus <= like.nccl.host_gpus && node.gpus < like.node.gpus;
}

}  // namespace

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

void sum_gpu_links(ImportedNode& imported) {
  Node& node = imported.cluster.node;
  const std::vector<double> fabric = rates_by_gpu(node, true), pcie = rates_by_gpu(node, false);
  const std::vector<std::vector<std::size_t>> islands = islands_of(node);
  const auto largest =
      std::ranges::max_element(islands, {}, [](const auto& island) { return island.size(); });
  bool switched = false, xgmi = false;
  for (const NodeLink& link : node.wiring) {
    switched = switched || link.to == "nvswitch";
    xgmi = xgmi || link.kind == "xgmi";
  }
  const auto gpus = static_cast<std::size_t>(node.gpus);
  node.gpu_link_kind = "pcie";
  node.gpu_link.bandwidth = *std::ranges::min_element(pcie);
  // A node with one GPU that lists links to other nodes counts these.
  if (largest->size() > 1 ? 2 * largest->size() > gpus : fabric.front() > 0) {
    node.gpu_link_kind = switched ? "nvswitch" : xgmi ? "xgmi" : "nvlink-mesh";
    node.gpu_link.bandwidth = least_of(fabric, *largest);
    note_slower(imported, fabric, *largest);
    std::vector<std::size_t> lost;
    for (const auto& island : islands)
      if (island != *largest) lost.insert(lost.end(), island.begin(), island.end());
    if (!lost.empty())
      imported.notes.push_back(fmt::format(
          "warning: {} has lost the links to the other {} GPUs and is reached by PCIe; collectives over "
          "the whole node are priced by the links of the others",
          gpu_names(lost), largest->size()));
  } else if (are_even(islands)) {
    NcclFacts& nccl = imported.cluster.nccl;
    nccl.island_gpus = static_cast<int>(islands.front().size());
    nccl.island_bandwidth = *std::ranges::min_element(fabric);
    nccl.island_kind = "nvlink-bridge";
    imported.notes.push_back(fmt::format("{} joins {} GPUs each; between these the node has PCIe",
                                         xgmi ? "Infinity Fabric" : "NVLink", nccl.island_gpus));
  } else if (largest->size() > 1) {
    imported.notes.push_back(
        fmt::format("warning: {} joins {}, but not these and the other GPUs: the node is read as a PCIe node",
                    xgmi ? "Infinity Fabric" : "NVLink", gpu_names(*largest)));
  }
}

void complete(ImportedNode& imported, const Cluster& like) {
  Cluster& cluster = imported.cluster;
  const NcclFacts told = cluster.nccl;
  cluster.gpu = like.gpu;
  cluster.max_nodes = like.max_nodes;
  cluster.fabric = like.fabric;
  cluster.profile = like.profile;
  cluster.nccl = like.nccl;
  if (is_host_of_domain(cluster.node, like)) return keep_domain(imported, like);
  if (imported.tells_gpu_links) {
    cluster.nccl.island_gpus = told.island_gpus;
    cluster.nccl.island_bandwidth = told.island_bandwidth;
    cluster.nccl.island_kind = told.island_kind;
  }
  if (!imported.tells_gpu_links) {
    add_gpu_links(cluster.node, like);
    imported.notes.push_back(
        fmt::format("links between the GPUs: those of {}, {}", like.name, like.node.gpu_link_kind));
  } else if (!has_gpu_links(cluster.node) && like.node.gpu_link_kind != "pcie") {
    imported.notes.push_back(fmt::format(
        "warning: the file names no links between its GPUs but PCIe, {} has {}; `nvidia-smi topo -mp` "
        "and some containers hide them: run `nvidia-smi topo -m` on the host",
        like.name, like.node.gpu_link_kind));
  }
  const bool same_mesh = imported.tells_gpu_links && cluster.node.gpus == like.node.gpus &&
                         cluster.node.gpu_link_kind == "nvlink-mesh";
  if (imported.tells_gpu_links && !same_mesh) cluster.nccl.rings.clear();
  cluster.node.gpu_link.latency = like.node.gpu_link.latency;
  cluster.node.host = like.node.host;
  complete_nics(imported, like);
  if (cluster.node.nics == 0) cluster.max_nodes = 1;
}

}  // namespace rehearse
