// Do two tasks of a run ever want the same link at the same time?
#pragma once

#include "result/timeline.h"
#include "run/loads.h"

namespace rehearse::properties {

// In the timeline as it is without contention. A compute op whose collectives are on links holds them all
// along.
bool meets_on_a_link(const Tasks& tasks, const Loads& loads, const Timeline& alone);

// By task: the most transfers that any chain of tasks up to its end has made one after the other. SimGrid may
// end each of them a nanosecond early.
std::vector<int> transfers_in_a_row(const Tasks& tasks, const Loads& loads);

}  // namespace rehearse::properties
