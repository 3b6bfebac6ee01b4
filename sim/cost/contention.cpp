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
  return std::clamp(1 - nearest->alone_s / nearest->message.seconds, 0.0, kMaxTaken);
}

double share_taken(const Profile& profile, const Cluster& cluster, const GroupShape& group) {
  if (!profile.collectives || group.members < 2) return 0;
  return share_taken(cluster.gpu, nccl::blocks(nccl::graphs_of(*profile.collectives, cluster, group).own));
}

double share_taken(const Gpu& gpu, double blocks) {
  return gpu.multiprocessors > 0 ? std::min(kMaxTaken, blocks / gpu.multiprocessors) : 0;
}

double memory_taken_s(const Gpu& gpu, int members, CollectiveOp op, double bytes) {
  if (members < 2 || gpu.memory_bandwidth <= 0) return 0;
  return 2 * sent_bytes(op, bytes, members) / gpu.memory_bandwidth;
}

Taken& Taken::operator+=(const Taken& next) {
  blocks = std::max(blocks, next.blocks);
  memory_s += next.memory_s;
  return *this;
}

Taken taken_by(const Profile& profile, const Gpu& gpu, const GroupShape& group, CollectiveOp op, double bytes,
               double blocks) {
  if (const auto measured = measured_share(profile, op, group)) return {*measured, 0};
  return {blocks, memory_taken_s(gpu, group.members, op, bytes)};
}

double share_lost(const Taken& taken, double seconds) {
  const double memory = seconds > 0 ? std::min(1.0, taken.memory_s / seconds) : 0;
  return std::min(kMaxTaken, 1 - (1 - taken.blocks) * (1 - memory));
}

}  // namespace rehearse
