// How long does a schedule take when messages and reductions are free? Written apart from tasks.h, as an
// independent witness.
#pragma once

#include <array>
#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// Times of one chunk's op, in any unit; B takes input and weight.
struct ChunkTimes {
  double forward = 1;
  double input = 1;
  double weight = 1;
  double message = 0;
};

struct Replay {
  double makespan = 0;
  std::vector<double> busy;  // compute, by rank
  double longest_span = 0;   // of a rank, from its first compute op to its last
};

// std::runtime_error when the schedule stops short of its end.
Replay replay(const Schedule& schedule, const ChunkTimes& times);

}  // namespace rehearse
