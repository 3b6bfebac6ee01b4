// How much of an order is bubble, by its shape alone?
#pragma once

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace rehearse {

// Idle time over the whole time, as the mean over pipeline ranks. All stages are equal, and messages are
// free. A backward lasts two forwards, each of its halves one. This is the figure of ideal_bubble_fraction(),
// for orders that have no closed form. `order`: compute ops, with or without messages.
double bubble_of_order(const Schedule& order, const Plan& plan);

}  // namespace rehearse
