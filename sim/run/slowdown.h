// How much longer do kernels take beside the collectives of their own GPU?
#pragma once

#include <vector>

#include "cost/stage_times.h"
#include "run/loads.h"

namespace rehearse {

// Seconds by pipeline rank and op; 0 for ops without delay.
using Delays = std::vector<std::vector<double>>;

// The time that each compute op loses. Its kernels run at 1 - Loads::taken of their rate as long as a
// collective runs beside them. In an op with collectives of its own, kernels are spread evenly. A walk
// through the tasks in time, without contention on links, tells which ops run at the same time. `tasks` hold
// each pipeline rank once. Empty where nothing is lost.
Delays delays_beside_collectives(const Schedule& schedule, const Tasks& tasks, const OpTimes& times,
                                 const Loads& loads);

// Adds them to the ops of all instances.
void delay(const Delays& delays, const Tasks& tasks, Loads& loads);

}  // namespace rehearse
