// Which rank runs each stage? The lists themselves tell, for looping and V-shaped placements alike.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace rehearse {

// By stage; -1 for a stage that no rank computes. Where several ranks claim a stage, the first counts.
std::vector<int> ranks_by_stage(const Schedule& schedule);

}  // namespace rehearse
