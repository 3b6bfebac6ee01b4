#include "cluster/share.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace rehearse {

namespace {

int host_gpus(const Cluster& cluster) {
  const int known = cluster.nccl.host_gpus;
  return known > 0 ? known : cluster.node.gpus;
}

void require_hosts(const Cluster& cluster, int gpus_per_node) {
  const int host = host_gpus(cluster), whole = cluster.node.gpus;
  if (!cluster.node.wiring.empty())
    throw InputError({"", "/gpus_per_node", "a job must use all GPUs of a node with custom links",
                      fmt::format("{} of a node's {} GPUs", gpus_per_node, whole), std::to_string(whole)});
  if (gpus_per_node <= whole && gpus_per_node % host == 0) return;
  const int below = std::min(gpus_per_node / host * host, whole), above = below + host;
  std::string nearest = below > 0 ? std::to_string(below) : "";
  if (above <= whole) nearest += (nearest.empty() ? "" : " or ") + std::to_string(above);
  throw InputError({"", "/gpus_per_node", "a job must use whole hosts of a node",
                    fmt::format("{} of a node's {} GPUs, {} a host", gpus_per_node, whole, host), nearest});
}

}  // namespace

int even_share(const Cluster& cluster, std::int64_t gpus, int together) {
  const int whole = cluster.node.gpus, host = host_gpus(cluster);
  if (host == whole || gpus % host != 0 || !cluster.node.wiring.empty()) return whole;
  const std::int64_t hosts = gpus / host, fewest = (gpus + whole - 1) / whole;
  const std::int64_t in_last = gpus - (fewest - 1) * whole;
  for (std::int64_t nodes = fewest; nodes <= 2 * fewest; ++nodes) {
    if (hosts % nodes != 0) continue;
    const std::int64_t share = gpus / nodes;
    const bool splits_groups = whole % together == 0 && share % together != 0;
    if (!splits_groups && (nodes == fewest || share > in_last)) return static_cast<int>(share);
  }
  return whole;
}

Cluster with_share(Cluster cluster, int gpus_per_node) {
  Node& node = cluster.node;
  if (gpus_per_node == node.gpus) return cluster;
  require_hosts(cluster, gpus_per_node);
  node.host.adam_parameters_per_s *= static_cast<double>(gpus_per_node) / node.gpus;
  const std::int64_t nics_of_all = std::int64_t{node.nics} * gpus_per_node;
  node.nics = static_cast<int>((nics_of_all + node.gpus - 1) / node.gpus);
  if (!node.nic_of_gpu.empty()) node.nic_of_gpu.resize(static_cast<std::size_t>(gpus_per_node));
  node.gpus = gpus_per_node;
  return cluster;
}

}  // namespace rehearse
