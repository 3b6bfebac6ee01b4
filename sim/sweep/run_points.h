// How are the points of a sweep run on all cores?
#pragma once

#include <functional>
#include <limits>

#include "sweep/points_left.h"
#include "sweep/row.h"

namespace rehearse {

using Evaluate = std::function<Row(Point)>;
using Deliver = std::function<void(Point, const Row&)>;  // one call at a time, as soon as a row is known
using Stopped = std::function<bool()>;                   // called repeatedly

// Both run the points in order, `jobs` at a time, until none is left or they are stopped. When stopped,
// processes abandon current points; threads finish and deliver them. An exception of `evaluate` makes a
// failed row. An exception of `deliver` ends the run and is rethrown.
void run_in_threads(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                    const Deliver& deliver);

// Each point runs in a forked child of its own. This serves engines that run once a process, and limits a
// crash to one row, as well as a run longer than `most_seconds`. Time in which the caller does not run (a
// suspended job) does not count. No other thread may run in the caller.
void run_in_processes(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                      const Deliver& deliver, double most_seconds = std::numeric_limits<double>::infinity());

// The result of `evaluate`, or a failed row with its exception's text.
Row evaluate_safely(const Evaluate& evaluate, Point point);

}  // namespace rehearse
