// How are the seconds of an iteration divided, on one rank and on the critical path through all ranks?
#pragma once

#include "result/critical_path.h"
#include "result/idle.h"
#include "result/report.h"

namespace rehearse {

// Components of a span of `op` at its priced time; only the proportions count. An op that `times` does not
// contain is compute; STEP is optimizer.
TimeParts priced_parts(const Op& op, int pipeline_rank, const OpTimes& times);

// Seconds of an op's expert all-to-alls that kernels of the concurrent pass hide; its parts do not contain
// them.
double hidden_exchange_s(const Op& op, const OpTimes& times);

// Busy time by cause, and idle time by the op that it waits for; time.sum() is `step_time_s`.
struct RankTime {
  TimeShares time;
  Exposure exposed;
};
RankTime rank_time(const TimelineRank& rank, const RankOps& ops, const OpTimes& times, double step_time_s,
                   bool one_queue);

// Times of the path. A compute op is divided by cause. A message or collective is exposed while its rank
// computes nothing. Bubble is the time in which no op of the path runs. time.sum() is the iteration.
RankTime path_time(const std::vector<PathSegment>& path, const Timeline& timeline, const Schedule& schedule,
                   const OpTimes& times);

// By rank of the timeline: seconds of the path.
std::vector<double> path_seconds(const std::vector<PathSegment>& path, const Timeline& timeline);

// Index of the rank with the largest share of the path, the first of equal ones.
std::size_t largest_share(const std::vector<double>& path_s);

}  // namespace rehearse
