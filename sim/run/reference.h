// When does each task begin and end when nothing contends? Found by the longest path through the tasks. This
// is the oracle of the tests and the fast engine of search.
#pragma once

#include <span>
#include <vector>

#include "result/timeline.h"
#include "run/loads.h"
#include "schedule/tasks.h"

namespace rehearse {

// ends[t] = max over predecessors + seconds[t], in one pass over `order` (a topological order of all tasks);
// returns the latest end. `begins` is overwritten. O(tasks + edges), no allocation once `begins` has its
// size.
double longest_path(const Tasks& tasks, std::span<const TaskId> order, std::span<const double> seconds,
                    std::vector<double>& begins);

Timeline reference(const Schedule& schedule, const Tasks& tasks, const Loads& loads);

// Spans of every op from the begin and end of its task, and the time that its inner collectives lost on their
// links.
Timeline spread(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                std::span<const double> begins, std::span<const double> ends);

}  // namespace rehearse
