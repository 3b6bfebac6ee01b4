// How much longer do kernels take beside the collectives of their own GPU?
#pragma once

#include <vector>

#include "cost/stage_times.h"
#include "run/loads.h"

namespace rehearse {

// Seconds by pipeline rank and op; 0 for what nothing delays.
using Delays = std::vector<std::vector<double>>;

// What each compute op loses: beside a collective its kernels run at 1 - Loads::taken of their rate, as long
// as both last; kernels are spread evenly over an op that has collectives of its own. Which ops run side by
// side follows from a walk through the tasks in time, without contention on links. `tasks` hold each pipeline
// rank once. Empty where nothing is lost.
Delays delays_beside_collectives(const Schedule& schedule, const Tasks& tasks, const OpTimes& times,
                                 const Loads& loads);

// Adds them to the ops of all instances.
void delay(const Delays& delays, const Tasks& tasks, Loads& loads);

}  // namespace rehearse
