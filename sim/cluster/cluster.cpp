#include "cluster/cluster.h"

#include <fmt/format.h>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::int64_t kManyGpus = 1LL << 31;

// How many GPUs the cluster can be asked for.
std::int64_t most_gpus(const Cluster& cluster) {
  return cluster.max_nodes == 0 ? kManyGpus : std::int64_t{cluster.max_nodes} * cluster.node.gpus;
}

void require_gpu(const Cluster& cluster, int gpu) {
  const std::int64_t most = most_gpus(cluster);
  if (gpu >= 0 && gpu < most) return;
  throw InputError({cluster.name, "", fmt::format("GPUs are numbered from 0 to {}", most - 1),
                    fmt::format("asked for GPU {}", gpu), fmt::format("{}", gpu < 0 ? 0 : most - 1)});
}

}  // namespace

Path path_between(const Cluster& cluster, int from, int to) {
  require_gpu(cluster, from);
  require_gpu(cluster, to);
  if (from == to) {
    throw InputError({cluster.name, "", "a path joins two different GPUs",
                      fmt::format("from = {}, to = {}", from, to), ""});
  }
  const bool crosses_nodes = from / cluster.node.gpus != to / cluster.node.gpus;
  return {crosses_nodes ? cluster.node.nic : cluster.node.gpu_link, crosses_nodes};
}

}  // namespace rehearse
