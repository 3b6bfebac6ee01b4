// How are the points of a sweep worked off on all cores?
#pragma once

#include <functional>
#include <limits>

#include "sweep/points_left.h"
#include "sweep/row.h"

namespace rehearse {

using Evaluate = std::function<Row(Point)>;
using Deliver = std::function<void(Point, const Row&)>;  // one call at a time, as soon as a row is known
using Stopped = std::function<bool()>;                   // asked again and again

// Both work the points off in order, `jobs` at a time, until none is left or they are stopped; what is
// running then is given up (processes) or finished and delivered (threads). An exception of `evaluate` makes
// a failed row; one of `deliver` ends the run and is thrown again.
void run_in_threads(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                    const Deliver& deliver);

// Each point in a forked child of its own: for engines that run once a process, and so that a crash costs one
// row, as does one that takes longer than `most_seconds`. Time in which the caller itself does not run, as a
// suspended job does not, is no row's time. No other thread may run in the caller.
void run_in_processes(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                      const Deliver& deliver, double most_seconds = std::numeric_limits<double>::infinity());

// What `evaluate` answers, or a failed row with what it throws.
Row evaluate_safely(const Evaluate& evaluate, Point point);

}  // namespace rehearse
