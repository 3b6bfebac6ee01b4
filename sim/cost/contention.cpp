#include "cost/contention.h"

#include <algorithm>
#include <cmath>

#include "cost/nccl/model.h"

namespace rehearse {

std::optional<double> measured_share(const Profile& profile, CollectiveOp op, const GroupShape& group) {
  if (!profile.measurement || profile.measurement->beside.empty()) return std::nullopt;
  const std::string name = message_name(op);
  const BesideSample* nearest = nullptr;
  const auto distance = [&group](const BesideSample& sample) {
    return std::abs(std::log(static_cast<double>(sample.message.members) / group.members));
  };
  for (const BesideSample& sample : profile.measurement->beside) {
    if (sample.message.op != name || (sample.message.nodes > 1) != (group.nodes > 1)) continue;
    if (nearest == nullptr || distance(sample) < distance(*nearest)) nearest = &sample;
  }
  if (nearest == nullptr) return std::nullopt;
  return std::clamp(1 - nearest->alone_s / nearest->message.seconds, 0.0, kMostTaken);
}

double share_taken(const Profile& profile, const Cluster& cluster, const GroupShape& group) {
  if (!profile.collectives || group.members < 2) return 0;
  return share_taken(cluster.gpu, nccl::blocks(nccl::graphs_of(*profile.collectives, cluster, group).own));
}

double share_taken(const Gpu& gpu, double blocks) {
  return gpu.multiprocessors > 0 ? std::min(kMostTaken, blocks / gpu.multiprocessors) : 0;
}

double memory_taken(const Gpu& gpu, int members, const UnderWay& collective) {
  if (members < 2 || collective.seconds <= 0 || gpu.memory_bandwidth <= 0) return 0;
  const double moved = 2 * sent_bytes(collective.op, collective.bytes, members);
  return moved / collective.seconds / gpu.memory_bandwidth;
}

double share_lost(const Gpu& gpu, int members, const UnderWay& collective, double blocks) {
  return std::min(kMostTaken, 1 - (1 - blocks) * (1 - memory_taken(gpu, members, collective)));
}

double share_lost(const Profile& profile, const Gpu& gpu, const GroupShape& group, const UnderWay& collective,
                  double blocks) {
  return measured_share(profile, collective.op, group)
      .value_or(share_lost(gpu, group.members, collective, blocks));
}

}  // namespace rehearse
