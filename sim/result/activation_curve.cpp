#include "result/activation_curve.h"

#include <algorithm>

#include "memory/activation_events.h"

namespace rehearse {

std::vector<MemoryPoint> activation_curve(const TimelineRank& rank, const RankOps& ops,
                                          const std::vector<StageBytes>& stages) {
  std::vector<MemoryPoint> curve;
  walk_live_bytes(ops, stages, [&](std::size_t op, const LiveBytes&, const LiveBytes& now, bool ended) {
    const double time = ended ? rank.spans[op].end : rank.spans[op].begin;
    const double earlier = curve.empty() ? 0 : curve.back().time_s;
    curve.push_back({std::max(earlier, time), now.total});
  });
  return curve;
}

}  // namespace rehearse
