#include "cost/nccl/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "cost/links.h"

namespace rehearse::nccl {

namespace {

constexpr double kMaxChannels = 32;     // of the search, before doubling
constexpr double kMinOfBest = 0.49;     // of the best speed found, where the search ends
constexpr int kMaxHeads = 32;           // NCCL_MAX_NVLS_ARITY
constexpr double kPcie3x16 = 15.754e9;  // 8 GT/s x 16 lanes x 128/130
constexpr std::array<double, kGenerations> kNominalNvlink = {25e9, 25e9, 25e9, 50e9};

bool is_nvidia(const Cluster& cluster) {
  return cluster.nccl.sm > 0;
}

const std::vector<double>& speeds(const std::array<std::vector<double>, 3>& lists, Generation generation) {
  return lists[generation < Generation::hopper ? 0 : generation == Generation::hopper ? 1 : 2];
}

// The fastest listed speed within `rate`, or the rate itself when it is slower than all.
double listed_speed(const std::vector<double>& list, double rate) {
  const auto found = std::find_if(list.begin(), list.end(), [&](double s) { return s <= rate * (1 + 1e-9); });
  return found == list.end() ? rate : *found;
}

struct Channels {
  double count = 1;
  double rate = 0;
};

// Limits on the channels of a group. Each channel crosses each GPU's link once, and across nodes one NIC.
struct Ways {
  double link_rate = 0, nics = 1, nic_rate = 0;

  // Channels of this speed that fit. A NIC may carry several channels. NICs that the GPUs' links cannot feed
  // stay idle.
  double channels(double speed) const {
    const auto within = [speed](double rate) { return std::floor(rate / speed + 1e-9); };
    return std::min({within(link_rate), nics * within(nic_rate), kMaxChannels});
  }
};

bool carries_more(Channels one, Channels other) {
  return one.count * one.rate > other.count * other.rate * (1 + 1e-9);
}

// ncclTopoDupChannels: fast channels are split in two.
Channels split(Channels found, Generation generation) {
  const bool keeps = generation >= Generation::hopper && found.rate < 50e9 && found.count > 4;
  if (found.rate < 25e9 || keeps) return found;
  const double count = std::min(2 * found.count, kMaxChannels);
  return {count, found.rate / std::ceil(count / found.count)};
}

// The first pass of search.cc's ncclTopoCompute: it takes the listed speed at which all channels together
// carry most.
Channels search(const std::vector<double>& list, const Ways& ways) {
  Channels best{0, 0};
  for (const double speed : list) {
    if (speed <= kMinOfBest * best.rate) break;
    const Channels found{ways.channels(speed), speed};
    if (carries_more(found, best)) best = found;
  }
  return best.count > 0 ? best : Channels{1, std::min(ways.link_rate, ways.nic_rate)};
}

// The second pass, for rings: the same number of channels at the greatest speed that fits.
Channels raised(const std::vector<double>& list, const Ways& ways, const Channels found) {
  Channels best = found;
  for (const double speed : list) {
    if (speed <= found.rate) break;
    const Channels faster{ways.channels(speed), speed};
    if (faster.count >= found.count && carries_more(faster, best)) best = faster;
  }
  return best;
}

// Returns the NICs that the channels use: at most one each, before channels are split.
double lay_channels(const std::vector<double>& list, const Ways& ways, Graph& graph) {
  const Channels found = search(list, ways);
  const Channels channels = raised(list, ways, split(found, graph.generation));
  graph.channels = channels.count;
  graph.bus_rate = channels.count * channels.rate;
  return std::min(ways.nics, found.count);
}

// In a mesh, only the links between members carry traffic of the group.
double share_of_mesh(const Cluster& cluster, double local) {
  const Node& node = cluster.node;
  const std::vector<double>& rings = cluster.nccl.rings;
  if (node.gpu_link_kind != "nvlink-mesh" && node.gpu_link_kind != "xgmi") return 1;
  const auto members = static_cast<std::size_t>(std::ceil(local));
  if (members < 2) return 1;
  if (members < rings.size() + 2) return rings[members - 2] / rings.back();
  return node.gpus > 1 ? (local - 1) / (node.gpus - 1) : 1;
}

double link_rate(const Constants& constants, const Cluster& cluster, const GroupShape& group,
                 Generation generation, double local) {
  const Node& node = cluster.node;
  const bool island = group.in_island;
  const double nominal =
      island ? cluster.nccl.island_bandwidth : node.gpu_link.bandwidth * share_of_mesh(cluster, local);
  if (!island && node.gpu_link_kind == "pcie") return nominal * constants.pcie3_x16_rate / kPcie3x16;
  return nominal * constants.nvlink_rate[index(generation)] / kNominalNvlink[index(generation)];
}

void add_network(const Constants& constants, const Cluster& cluster, const GroupShape& group, Graph& graph) {
  const Node& node = cluster.node;
  if (node.nics < 1) {
    throw InputError(
        {cluster.name, "/node/nics", "a group across nodes needs a NIC in each", "nics = 0", "1"});
  }
  graph.nics = std::max(1.0, std::round(graph.local / group.per_nic)) * nics_of_a_gpu(node);
  const std::vector<double>& list = speeds(constants.speeds_across, graph.generation);
  graph.nic_rate = listed_speed(list, node.nic.bandwidth);
  graph.slow_network_s = std::max(0.0, node.nic.latency - kInfinibandLatency);
  const double nics = std::max(1.0, std::round(group.ring_nics())) * nics_of_a_gpu(node);
  const double link_rate = graph.local > 1 ? graph.link_rate : std::numeric_limits<double>::infinity();
  graph.ring_nics = lay_channels(list, {link_rate, nics, node.nic.bandwidth}, graph);
  const std::string& kind = node.nic_kind;
  if (kind == "ethernet" || kind == "socket" || kind == "tcpx") graph.ll128 = false;
}

}  // namespace

Generation generation_of(const Cluster& cluster) {
  if (!is_nvidia(cluster)) return Generation::hopper;
  if (cluster.nccl.sm < 80) return Generation::volta;
  if (cluster.nccl.sm < 90) return Generation::ampere;
  return cluster.nccl.sm < 100 ? Generation::hopper : Generation::blackwell;
}

const std::string& link_kind(const Cluster& cluster, const GroupShape& group) {
  if (group.nodes > 1) return cluster.node.nic_kind;
  return group.in_island ? cluster.nccl.island_kind : cluster.node.gpu_link_kind;
}

double blocks(const Graph& graph) {
  return kChannelsAfterSearch * graph.channels;
}

Graph graph_of(const Constants& constants, const Cluster& cluster, const GroupShape& group) {
  Graph graph;
  graph.generation = generation_of(cluster);
  graph.members = group.members;
  graph.nodes = group.nodes;
  graph.local = static_cast<double>(group.members) / group.nodes;
  graph.wire = cluster.node.gpu_link_kind == "pcie" && !group.in_island ? Wire::pcie : Wire::nvlink;
  graph.ll128 = cluster.nccl.sm >= 70 && graph.wire == Wire::nvlink;
  // A mesh limits a group only within one node: across nodes its rings enter and leave at the NICs.
  graph.link_rate = link_rate(constants, cluster, group, graph.generation,
                              group.nodes > 1 ? cluster.node.gpus : graph.local);
  const std::vector<double>& list = speeds(constants.speeds_in_node, graph.generation);
  lay_channels(list, {graph.link_rate, 1, graph.link_rate}, graph);
  if (is_nvidia(cluster) && cluster.node.gpu_link_kind == "nvswitch" && graph.local > 1) {
    graph.heads = std::min(graph.local, static_cast<double>(kMaxHeads));
    graph.head_rate = listed_speed(list, graph.link_rate / graph.heads);
  }
  if (group.nodes > 1) add_network(constants, cluster, group, graph);
  return graph;
}

}  // namespace rehearse::nccl
