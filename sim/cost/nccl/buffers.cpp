#include "cost/nccl/buffers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cost/links.h"

namespace rehearse::nccl {

namespace {

double rounded_up(double bytes) {
  return std::ceil(bytes / kGranularity) * kGranularity;
}

int power_of_two(int least) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(1, least))));
}

int most_channels(Release release) {
  return release == Release::v2_10 ? 32 : 64;  // include/device.h, MAXCHANNELS
}

// src/transport/nvls.cc, NVLS_NCHANNELS_*: a block a channel.
int nvls_channels(const Graph& graph) {
  if (graph.generation < Generation::blackwell) return 16;
  return graph.nodes > 1 ? 32 : 24;
}

bool reads_gpu_memory(const Cluster& cluster) {
  return cluster.node.nic_kind != "ethernet" && cluster.node.nic_kind != "socket";
}

}  // namespace

double near_pair_bytes() {
  return rounded_up(kFlagBytes) + rounded_up(kFlagBytes + kLlBytes + kLl128Bytes + kSimpleBytes);
}

double far_pair_bytes() {
  return rounded_up(kLl128Bytes + kSimpleBytes) + rounded_up(kLlBytes + kLl128Bytes + kSimpleBytes);
}

Buffers::Buffers(const Constants& constants, const Cluster& cluster, const GroupShape& group, Release release)
    : constants_(constants),
      cluster_(cluster),
      release_(release),
      graph_(graph_of(constants, cluster, group)) {}

// Hopper doubles the channels of few NICs once more (NCCL 2.30, src/graph/connect.cc, ncclTopoPostset).
int Buffers::channels() const {
  int count = static_cast<int>(blocks(graph_));
  const bool fast = graph_.nodes > 1 && graph_.bus_rate / graph_.channels > 45e9;
  if (release_ == Release::v2_30 && graph_.generation >= Generation::hopper && fast && count < 16) count *= 2;
  return std::min(count, most_channels(release_));
}

int Buffers::local() const {
  return static_cast<int>(std::ceil(graph_.local));
}

double Buffers::far_bytes() const {
  return reads_gpu_memory(cluster_) ? far_pair_bytes() : 0;
}

// Within a node, a tree is the ring's chain in both directions. Across nodes, each channel's chain has a head
// and a tail, which connect to other nodes instead. Every GPU near a NIC is the head of the same number of
// chains.
double Buffers::ring_and_tree(Shapes shapes) const {
  if (!shapes.ring && !shapes.tree) return 0;
  const int both_ways = shapes.tree ? 2 : 1;
  if (graph_.nodes == 1) return channels() * (graph_.members > 2 ? both_ways : 1) * near_pair_bytes();
  if (local() == 1) return channels() * most_pairs(graph_.nodes, shapes) * far_bytes();
  const double heads = channels() / std::min(static_cast<double>(local()), graph_.ring_nics);
  const double far = (shapes.ring ? 1 : 0) + (shapes.tree ? most_pairs(graph_.nodes, {false, true}) : 0);
  return std::max(0.0, channels() - heads) * both_ways * near_pair_bytes() + heads * far * far_bytes();
}

// For each head and channel, two buffers of 8 steps of 128 KiB (src/transport/nvls.cc, ncclNvlsBufferSetup).
double Buffers::nvls(bool with_tree) const {
  constexpr double kBufferBytes = 8 * 128 * 1024;
  const double own = rounded_up(2 * kBufferBytes * nvls_channels(graph_) * graph_.heads);
  if (!with_tree) return own;
  return own + nvls_channels(graph_) * most_pairs(graph_.nodes, {false, true}) * far_bytes();
}

// PAT connects to the members 1, 2, 4, ... away on both sides (src/transport/generic.cc).
double Buffers::binomial_trees(bool ring) const {
  const int steps = static_cast<int>(std::bit_width(static_cast<unsigned>(graph_.members - 1)));
  const int peers = std::min(graph_.members - 1, 2 * steps);
  return std::max(0, peers - (ring ? 1 : 0)) * channels() * far_bytes();
}

double Buffers::collectives(const std::set<Algorithm>& algorithms) const {
  if (graph_.members < 2) return 0;
  const Shapes shapes{algorithms.contains(Algorithm::ring), algorithms.contains(Algorithm::tree)};
  double bytes = ring_and_tree(shapes);
  const bool nvls_tree = algorithms.contains(Algorithm::nvls_tree);
  if (nvls_tree || algorithms.contains(Algorithm::nvls)) bytes += nvls(nvls_tree);
  if (algorithms.contains(Algorithm::pat)) bytes += binomial_trees(shapes.ring);
  return bytes;
}

// NVLinks between two GPUs; in a mesh, the fewest of any pair.
int Buffers::links_to_a_peer() const {
  if (graph_.wire != Wire::nvlink || link_kind(cluster_, {2, 1}) == "nvlink-mesh" || cluster_.nccl.sm == 0)
    return 1;
  return std::max(
      1, static_cast<int>(graph_.link_rate / constants_.nvlink_rate[index(graph_.generation)] + 1e-9));
}

// Channels of a message to another node: at least one for each NIC of the GPU, and for each 14 GB/s of them
// (NCCL_P2P_PER_CHANNEL_NET_BW).
int Buffers::far_channels() const {
  constexpr double kChannelRate = 14e9;
  if (release_ == Release::v2_10) return 1;
  const double nics = nics_of_a_gpu(cluster_.node);
  return static_cast<int>(std::max(nics, std::ceil(nics * graph_.nic_rate / kChannelRate)));
}

// src/graph/paths.cc, ncclTopoGetNchannels and ncclTopoComputeP2pChannels: as many channels as the slowest
// path to any member can use, rounded to a power of two. Across nodes, few enough that all channels suffice
// for the rounds of 8 peers.
int Buffers::channels_of_a_peer() const {
  constexpr int kPeersOfARound = 8;
  const int all = power_of_two(channels());
  int count = std::min(2 * links_to_a_peer(), channels());
  if (graph_.nodes > 1) count = local() > 1 ? std::min(count, far_channels()) : far_channels();
  count = power_of_two(count);
  const int rounds = (graph_.members + kPeersOfARound - 1) / kPeersOfARound;
  while (release_ == Release::v2_30 && graph_.nodes > 1 && count > 1 && count * rounds > all) count /= 2;
  return std::min(count, all);
}

// The pool of a channel to send and one to receive. NCCL 2.30: 16 slots of 128 KiB each (net.cc,
// NCCL_SHARED_STEPS). NCCL 2.10: 8 MiB, the bytes of 8 messages in flight (src/proxy.cc,
// ncclProxySharedBuffersInit).
double Buffers::exchanges(const Peers& peers) const {
  const double slots = release_ == Release::v2_10 ? 8 * kSimpleBytes / 4 : 16 * 128 * 1024;
  const double pool = reads_gpu_memory(cluster_) ? 2 * slots * power_of_two(channels()) : 0;
  return peers.near * channels_of_a_peer() * near_pair_bytes() + (peers.far > 0 ? pool : 0);
}

}  // namespace rehearse::nccl
