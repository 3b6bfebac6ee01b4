// Where did the seconds of one rank go?
#pragma once

#include "result/idle.h"
#include "result/report.h"

namespace rehearse {

// What a span of `op` consists of when all goes as priced; only the proportions count. An op that `times`
// does not know is compute, STEP is optimizer.
TimeParts priced_parts(const Op& op, int pipeline_rank, const OpTimes& times);

// Seconds of an op's exchanges of experts that the kernels of the pass beside it hide: not in its parts.
double hidden_exchange_s(const Op& op, const OpTimes& times);

// Busy time by cause and idle time by what it waits for; time.sum() is `step_time_s`.
struct RankTime {
  TimeShares time;
  Exposure exposed;
};
RankTime rank_time(const TimelineRank& rank, const RankOps& ops, const OpTimes& times, double step_time_s,
                   bool one_queue);

// Index of the rank whose last op ends last; of several, the one that computes most.
std::size_t critical_rank(const Timeline& timeline, const Schedule& schedule);

}  // namespace rehearse
