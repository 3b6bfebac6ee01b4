#include "cost/collectives.h"

#include <algorithm>
#include <map>
#include <vector>

#include "cost/links.h"
#include "cost/nccl/time_curve.h"

namespace rehearse {

namespace {

// Hops in sequence, and bytes that every rank puts on the ring.
struct RingLoad {
  double rounds = 1;  // times round the ring
  double bytes = 0;
};

RingLoad ring_load(CollectiveOp op, double bytes, int members) {
  return {op == CollectiveOp::all_reduce ? 2.0 : 1.0, sent_bytes(op, bytes, members)};
}

// Bytes/s that so many GPUs' NICs of a node carry together.
double node_rate(const Cluster& cluster, const Channel& nic, double nics) {
  return nics * nics_of_a_gpu(cluster.node) * nic.bandwidth;
}

// NCCL opens as many rings as the group has NICs in a node. Each ring enters and leaves the node once,
// through a NIC of its own. So all bytes of the ring cross every node boundary once, spread over those NICs.
// Each GPU carries them once on its link (NCCL graph/connect.cc; the same bound in graph/tuning.cc).
CommunicationTime ring_time(const Profile& profile, const Cluster& cluster, const RingLoad& load,
                            const GroupShape& group) {
  const double hops = load.rounds * (group.members - 1);
  const Channel gpu = gpu_channel(profile, cluster, "ring");
  if (group.nodes == 1) {
    return {gpu.latency_s + hops * gpu.step_latency_s, load.bytes / gpu.bandwidth, gpu.stand_in};
  }
  const Channel nic = nic_channel(profile, cluster, "ring");
  const double remote_hops = load.rounds * (group.nodes - 1);
  const bool leaves_at_once = group.members == group.nodes;  // one GPU a node: its link carries nothing
  const double rate = node_rate(cluster, nic, group.ring_nics());
  return {nic.latency_s + remote_hops * nic.step_latency_s + (hops - remote_hops) * gpu.step_latency_s,
          load.bytes / (leaves_at_once ? rate : std::min(rate, gpu.bandwidth)), gpu.stand_in || nic.stand_in};
}

// Every rank sends 1/n of its buffer to each other rank at once. Local shares use its GPU link, the others
// the NIC that it shares.
CommunicationTime all_to_all_time(const Profile& profile, const Cluster& cluster, double bytes,
                                  const GroupShape& group) {
  const double local = group.local();
  const Channel gpu = gpu_channel(profile, cluster, "send");
  const double near = bytes * (local - 1) / group.members / gpu.bandwidth;
  if (group.nodes == 1) return {gpu.latency_s + gpu.step_latency_s, near, gpu.stand_in};
  const Channel nic = nic_channel(profile, cluster, "send");
  const double rate = node_rate(cluster, nic, local / group.per_nic);
  const double far = bytes * (group.members - local) / group.members * local / rate;
  return {nic.latency_s + nic.step_latency_s, std::max(near, far), gpu.stand_in || nic.stand_in};
}

bool in_island(const Cluster& cluster, const std::vector<int>& ranks) {
  const int gpus = cluster.nccl.island_gpus;
  if (gpus == 0 || ranks.empty()) return false;
  const auto island = [&](int rank) {
    return std::pair(rank / cluster.node.gpus, rank % cluster.node.gpus / gpus);
  };
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return island(rank) == island(ranks.front()); });
}

}  // namespace

double sent_bytes(CollectiveOp op, double bytes, int members) {
  const double others = (members - 1.0) / members;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2 * others * bytes;
    case CollectiveOp::broadcast:
    case CollectiveOp::send_receive:
      return bytes;
    default:
      return others * bytes;
  }
}

double far_bytes(CollectiveOp op, double bytes, const GroupShape& group) {
  if (group.nodes < 2) return 0;
  if (op == CollectiveOp::send_receive) return bytes;
  if (op == CollectiveOp::all_to_all) return bytes * (group.members - group.local()) / group.members;
  return sent_bytes(op, bytes, group.members) / (group.ring_nics() * group.per_nic);
}

CommunicationTime& CommunicationTime::operator+=(const CommunicationTime& next) {
  latency_s += next.latency_s;
  transfer_s += next.transfer_s;
  extrapolated = extrapolated || next.extrapolated;
  return *this;
}

const std::map<std::string, CollectiveOp>& message_ops() {
  static const std::map<std::string, CollectiveOp> ops = {
      {"all_reduce", CollectiveOp::all_reduce},         {"all_gather", CollectiveOp::all_gather},
      {"reduce_scatter", CollectiveOp::reduce_scatter}, {"all_to_all", CollectiveOp::all_to_all},
      {"broadcast", CollectiveOp::broadcast},           {"send_receive", CollectiveOp::send_receive}};
  return ops;
}

std::string message_name(CollectiveOp op) {
  const auto& ops = message_ops();
  return std::find_if(ops.begin(), ops.end(), [op](const auto& known) { return known.second == op; })->first;
}

GroupShape group_shape(const Cluster& cluster, const std::vector<int>& ranks) {
  std::vector<int> ascending = ranks;
  if (!std::ranges::is_sorted(ascending)) std::ranges::sort(ascending);
  const int gpus = cluster.node.gpus;
  int nodes = 0;
  double per_nic = 1;
  std::size_t fewest_nics = ascending.size();
  std::vector<int> used;  // NICs of a node
  for (std::size_t first = 0, next = 0; first < ascending.size(); first = next) {
    used.clear();
    for (; next < ascending.size() && ascending[next] / gpus == ascending[first] / gpus; ++next)
      if (const int nic = cluster.nic_of(ascending[next] % gpus); std::ranges::find(used, nic) == used.end())
        used.push_back(nic);
    per_nic = std::max(per_nic, static_cast<double>(next - first) / static_cast<double>(used.size()));
    fewest_nics = std::min(fewest_nics, used.size());
    ++nodes;
  }
  return {static_cast<int>(ranks.size()), nodes, per_nic, in_island(cluster, ranks),
          static_cast<double>(fewest_nics)};
}

CollectiveTimes::CollectiveTimes(const Profile& profile, const Cluster& cluster)
    : profile_(profile), cluster_(cluster) {}
CollectiveTimes::~CollectiveTimes() = default;
CollectiveTimes::CollectiveTimes(CollectiveTimes&&) noexcept = default;

CommunicationTime CollectiveTimes::collective(CollectiveOp op, double bytes, const GroupShape& group) {
  if (group.members <= 1) return {};
  if (profile_.collectives) {
    const Key key = {static_cast<double>(op),          static_cast<double>(group.members),
                     static_cast<double>(group.nodes), group.per_nic,
                     group.in_island ? 1.0 : 0.0,      group.fewest_nics};
    auto found = curves_.find(key);
    if (found == curves_.end())
      found = curves_.emplace(key, nccl::TimeCurve(*profile_.collectives, cluster_, op, group)).first;
    return found->second.at(bytes);
  }
  if (op == CollectiveOp::send_receive) return send(bytes, group.nodes > 1);
  if (op == CollectiveOp::all_to_all) return all_to_all_time(profile_, cluster_, bytes, group);
  return ring_time(profile_, cluster_, ring_load(op, bytes, group.members), group);
}

CommunicationTime CollectiveTimes::lone_broadcast(double bytes, const GroupShape& group) {
  CommunicationTime time = collective(CollectiveOp::broadcast, bytes, group);
  if (profile_.collectives) time.latency_s += nccl::round_s(*profile_.collectives, cluster_, bytes, group);
  return time;
}

CommunicationTime CollectiveTimes::send(double bytes, bool crosses_nodes) {
  if (profile_.collectives)
    return collective(CollectiveOp::send_receive, bytes, {2, crosses_nodes ? 2 : 1, 1});
  const Channel channel =
      crosses_nodes ? nic_channel(profile_, cluster_, "send") : gpu_channel(profile_, cluster_, "send");
  const double ports = crosses_nodes ? nics_of_a_gpu(cluster_.node) : 1;
  return {channel.latency_s + channel.step_latency_s, bytes / (ports * channel.bandwidth), channel.stand_in};
}

CommunicationTime collective_time(const Profile& profile, const Cluster& cluster, CollectiveOp op,
                                  double bytes, const GroupShape& group) {
  return CollectiveTimes(profile, cluster).collective(op, bytes, group);
}

CommunicationTime lone_broadcast_time(const Profile& profile, const Cluster& cluster, double bytes,
                                      const GroupShape& group) {
  return CollectiveTimes(profile, cluster).lone_broadcast(bytes, group);
}

CommunicationTime send_time(const Profile& profile, const Cluster& cluster, double bytes,
                            bool crosses_nodes) {
  return CollectiveTimes(profile, cluster).send(bytes, crosses_nodes);
}

}  // namespace rehearse
