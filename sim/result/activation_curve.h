// How many bytes of activations does a rank hold during a step?
#pragma once

#include <vector>

#include "memory/lifetimes.h"
#include "result/timeline.h"

namespace rehearse {

// Bytes of activations and logits from `time_s` on. During an op they equal its peak.
struct MemoryPoint {
  double time_s = 0;
  double bytes = 0;
};
std::vector<MemoryPoint> activation_curve(const TimelineRank& rank, const RankOps& ops,
                                          const std::vector<StageBytes>& stages);

}  // namespace rehearse
