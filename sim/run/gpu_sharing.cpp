#include "run/gpu_sharing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cost/communicators.h"

namespace rehearse {

namespace {

// (when, +1 or -1): a pass of some rank begins or ends.
std::vector<std::pair<double, int>> changes(const Timeline& timeline, const Schedule& schedule) {
  std::vector<std::pair<double, int>> all;
  for (const TimelineRank& rank : timeline.ranks) {
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    for (std::size_t i = 0; i < rank.spans.size(); ++i) {
      if (!is_compute(ops[i].kind)) continue;
      all.emplace_back(rank.spans[i].begin, 1);
      all.emplace_back(rank.spans[i].end, -1);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

double concurrent_compute(const Timeline& timeline, const Schedule& schedule, int ranks, double others) {
  if (timeline.ranks.empty() || !(others > 0)) return 0;
  const double alike = static_cast<double>(ranks) / static_cast<double>(timeline.ranks.size());
  double computing = 0, before = 0, own_s = 0, too_s = 0;
  for (const auto& [when, change] : changes(timeline, schedule)) {
    const double now = computing * alike;
    own_s += now * (when - before);
    too_s += now * std::max(0.0, now - 1) * (when - before);
    computing += change;
    before = when;
  }
  return own_s > 0 ? std::min(1.0, too_s / own_s / others) : 0;
}

bool shares_gpu(const Experiment& experiment) {
  return experiment.profile.measurement && experiment.profile.measurement->with_concurrent_ranks &&
         are_parts_of_one_gpu(experiment.cluster);
}

}  // namespace rehearse
