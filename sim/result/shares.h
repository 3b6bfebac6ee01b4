// Where did the seconds of an iteration go, on one rank and on the critical path through all?
#pragma once

#include "result/critical_path.h"
#include "result/idle.h"
#include "result/report.h"

namespace rehearse {

// What a span of `op` consists of when all goes as priced; only the proportions count. An op that `times`
// does not know is compute, STEP is optimizer.
TimeParts priced_parts(const Op& op, int pipeline_rank, const OpTimes& times);

// Seconds of an op's expert all-to-alls that the kernels of the pass beside it hide: not in its parts.
double hidden_exchange_s(const Op& op, const OpTimes& times);

// Busy time by cause and idle time by what it waits for; time.sum() is `step_time_s`.
struct RankTime {
  TimeShares time;
  Exposure exposed;
};
RankTime rank_time(const TimelineRank& rank, const RankOps& ops, const OpTimes& times, double step_time_s,
                   bool one_queue);

// Of the path: a compute op by cause, a message or collective as exposed as far as its rank computes nothing
// meanwhile, and bubble where nothing on the path runs. time.sum() is the iteration.
RankTime path_time(const std::vector<PathSegment>& path, const Timeline& timeline, const Schedule& schedule,
                   const OpTimes& times);

// Index of the rank that most of the path lies on, the first of equal ones.
std::size_t critical_rank(const std::vector<PathSegment>& path, const Timeline& timeline);

}  // namespace rehearse
