// How much of an order is bubble by its shape alone?
#pragma once

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace rehearse {

// Idle over the whole, mean over pipeline ranks, when all stages are equal, messages are free and a backward
// lasts two forwards, each of its halves one. What ideal_bubble_fraction() has closed forms for, of an order
// without one: compute ops, with or without messages.
double bubble_of_order(const Schedule& order, const Plan& plan);

}  // namespace rehearse
