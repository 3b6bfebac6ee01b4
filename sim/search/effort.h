// How much work is a search of plans, known before it begins?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// A rough estimate: the number of plans that must be run depends on how near the bounds are.
struct SearchEffort {
  double seconds = 0;  // of one core of a server
  double bytes = 0;    // of memory in each of the threads
};

SearchEffort effort_of(const std::vector<Plan>& plans);

}  // namespace rehearse
