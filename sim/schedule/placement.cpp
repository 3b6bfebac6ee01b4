#include "schedule/placement.h"

namespace rehearse {

std::vector<int> ranks_by_stage(const Schedule& schedule) {
  std::vector<int> ranks(static_cast<std::size_t>(schedule.stages), -1);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const Op& op : schedule.ranks[rank].ops())
      if (is_compute(op.kind) && op.stage < ranks.size() && ranks[op.stage] < 0)
        ranks[op.stage] = static_cast<int>(rank);
  return ranks;
}

}  // namespace rehearse
