// Which sequence of ops through all ranks decides the duration of an iteration?
#pragma once

#include <cstdint>
#include <vector>

#include "result/timeline.h"
#include "schedule/tasks.h"

namespace rehearse {

// A stretch of the path, on one rank.
struct PathSegment {
  std::size_t rank = 0;  // index in Timeline::ranks
  std::int32_t op = -1;  // of the rank's list; -1: no op of the path runs
  double begin = 0, end = 0;
};

// The part of a timeline that is an iteration: from `begin` to the last end on `rank`; -1: on any rank.
struct PathWindow {
  double begin = 0;
  int rank = -1;  // index in Timeline::ranks
};

// The path from the last end back to the window's begin, in order of time. Before each op comes the one that
// it waited for longest. Candidates are the previous op in its stream, an op that it waits for, or one that
// another member of its message or collective waited for. Each segment begins where the one before it ends,
// so they sum to the iteration. `tasks` are those of the timeline; truncated lists are allowed. O(ops).
std::vector<PathSegment> critical_path(const Timeline& timeline, const Schedule& schedule, const Tasks& tasks,
                                       bool one_queue, const PathWindow& window = {});

}  // namespace rehearse
