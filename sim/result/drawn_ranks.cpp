#include "result/drawn_ranks.h"

#include <algorithm>
#include <set>

namespace rehearse {

std::vector<const TimelineRank*> drawn_ranks(const Timeline& timeline, const Report& report,
                                             std::size_t most) {
  std::vector<const TimelineRank*> first(report.memory.size());
  for (auto rank = timeline.ranks.rbegin(); rank != timeline.ranks.rend(); ++rank)
    first[static_cast<std::size_t>(rank->instance.pipeline_rank)] = &*rank;
  std::set<std::size_t> chosen;
  if (!first.empty()) chosen.insert(static_cast<std::size_t>(heaviest_rank(report).rank));
  const std::size_t lines = std::min(most, first.size());
  for (std::size_t i = 0; i < first.size() && chosen.size() < lines; ++i)
    chosen.insert(lines > 1 ? i * (first.size() - 1) / (lines - 1) : 0);
  std::vector<const TimelineRank*> ranks;
  for (const std::size_t i : chosen)
    if (first[i] != nullptr) ranks.push_back(first[i]);
  return ranks;
}

double state_and_buffer_bytes(const RankMemory& memory) {
  return memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes + memory.buffers_bytes;
}

}  // namespace rehearse
