// Orders that a search finds for a tiny network with a heavy head.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace rehearse {

// Compute ops only. The head takes as long as three layers, I and W together are longer than B, and no rank
// can hold the activations of all microbatches.
std::vector<Schedule> orders_for_a_heavy_head(const Plan& plan);

}  // namespace rehearse
