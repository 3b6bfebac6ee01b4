// How much longer do kernels take beside the collectives of their own GPU?
#pragma once

#include <vector>

#include "plan/stage_times.h"
#include "run/loads.h"

namespace rehearse {

// Seconds by pipeline rank and op; 0 for what nothing delays.
using Delays = std::vector<std::vector<double>>;

// What each compute op loses: Loads::taken of a collective times the seconds side by side, at most as if all
// of the op's kernels ran beside it. Which ops run side by side follows from the longest path, found anew
// until the delays no longer move by a thousandth. `tasks` hold each pipeline rank once. Empty where nothing
// is lost.
Delays delays_beside_collectives(const Schedule& schedule, const Tasks& tasks, const OpTimes& times,
                                 const Loads& loads);

// Adds them to the ops of all instances.
void delay(const Delays& delays, const Tasks& tasks, Loads& loads);

}  // namespace rehearse
