#include "cluster/cluster_json.h"

#include <fmt/core.h>

namespace rehearse {

namespace {

// Exact: 17 digits distinguish all doubles.
std::string written(double value, const char* unit) {
  return fmt::format("{:.17g}{}", value, unit);
}

Json port_json(const Port& port, const std::string& kind) {
  return {
      {"kind", kind}, {"bandwidth", written(port.bandwidth, "B/s")}, {"latency", written(port.latency, "s")}};
}

Json gpu_json(const Gpu& gpu) {
  Json json = {{"name", gpu.name}};
  if (gpu.multiprocessors > 0) json["multiprocessors"] = gpu.multiprocessors;
  if (gpu.compute_capability > 0) json["compute_capability"] = gpu.compute_capability;
  json["memory"] = written(gpu.memory_bytes, "B");
  json["memory_bandwidth"] = written(gpu.memory_bandwidth, "B/s");
  for (const auto& [precision, peak] : gpu.peak_flops) json["peak"][precision] = written(peak, "FLOPS");
  return json;
}

Json node_json(const Node& node) {
  Json json = {{"gpus", node.gpus}, {"gpu_link", port_json(node.gpu_link, node.gpu_link_kind)}};
  if (node.nics > 0) {
    Json& nics = json["nics"] = port_json(node.nic, node.nic_kind);
    nics["count"] = node.nics;
    nics["efficiency"] = node.nic_limits.efficiency;
    nics["messages_per_s"] = node.nic_limits.messages_per_s;
    if (!node.nic_of_gpu.empty()) nics["of_gpu"] = node.nic_of_gpu;
  }
  for (const NodeLink& link : node.wiring)
    json["wiring"].push_back({{"among", {link.from, link.to}},
                              {"kind", link.kind},
                              {"bandwidth", written(link.bandwidth, "B/s")}});
  return json;
}

Json fabric_json(const Fabric& fabric) {
  Json json = {{"kind", to_string(fabric.kind)}};
  for (const FabricLevel& level : fabric.levels)
    json["levels"].push_back(
        {{"name", level.name}, {"nodes", level.nodes}, {"oversubscription", level.oversubscription}});
  if (fabric.rails) json["rails"] = true;
  if (fabric.kind == FabricKind::dragonfly) json["routing"] = fabric.minimal_routing ? "minimal" : "adaptive";
  if (fabric.kind == FabricKind::torus) {
    json["extents"] = fabric.extents;
    json["link_bandwidth"] = written(fabric.link_bandwidth, "B/s");
  }
  return json;
}

Json nccl_json(const NcclFacts& facts) {
  Json json = Json::object();
  if (facts.sm > 0) json["sm"] = facts.sm;
  if (facts.host_gpus > 0) json["host_gpus"] = facts.host_gpus;
  if (facts.assumed_nics) json["assumed_nics"] = true;
  if (facts.degraded) json["degraded"] = true;
  if (!facts.rings.empty()) json["rings"] = facts.rings;
  if (facts.island_gpus > 0)
    json["island"] = {{"gpus", facts.island_gpus},
                      {"kind", facts.island_kind},
                      {"bandwidth", written(facts.island_bandwidth, "B/s")}};
  return json;
}

}  // namespace

Json messages_json(const Cluster& cluster) {
  return {
      {"schema", "rehearse.cluster/1"},        {"source", cluster.name},
      {"gpu", gpu_json(cluster.gpu)},          {"node", node_json(cluster.node)},
      {"fabric", fabric_json(cluster.fabric)}, {"max_nodes", cluster.node.nics == 0 ? 1 : cluster.max_nodes},
      {"nccl", nccl_json(cluster.nccl)}};
}

}  // namespace rehearse
