// How long does a schedule take when messages and reductions are free? Written apart from tasks.h, as an
// independent witness.
#pragma once

#include <array>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// Of one chunk's op, in any unit.
struct ChunkTimes {
  double forward = 1;
  double backward = 2;
};

struct Replay {
  double makespan = 0;
  std::vector<double> busy;  // compute, by rank
};

// std::runtime_error when the schedule stops short of its end.
Replay replay(const Schedule& schedule, const ChunkTimes& times);

}  // namespace rehearse
