// When did each op of each rank begin and end?
#pragma once

#include <vector>

#include "cost/stage_times.h"
#include "schedule/schedule.h"
#include "schedule/tasks.h"

namespace rehearse {

struct Span {
  double begin = 0;  // seconds from the start of the iteration; of a message: its first byte is sent
  double end = 0;
  double seconds() const { return end - begin; }
};

struct TimelineRank {
  Instance instance;
  std::vector<Span> spans;  // spans[i] belongs to op i of the rank's list
  // By op, its time beyond the priced time. In tp, cp and ep: its collectives, including contention on links.
  // In compute: all its kernels, on a slow GPU or concurrent with collectives. Empty: all as priced.
  std::vector<TimeParts> lost = {};
};

struct Timeline {
  std::vector<TimelineRank> ranks;
  double end() const;  // the last span's end: the step time
};

// Busy seconds of the compute stream: the time that at least one of its ops runs.
double compute_busy(const TimelineRank& rank, const RankOps& ops);

// Idle time of the compute stream inside the iteration over the iteration's length, for one rank.
double bubble_fraction(double busy_s, double step_time_s);
double bubble_fraction(const TimelineRank& rank, const RankOps& ops, double step_time_s);

// InputError unless every rank of the timeline has one finite span, not ending before it begins, for each op
// of its list in the schedule.
void require_fits(const Timeline& timeline, const Schedule& schedule);

}  // namespace rehearse
