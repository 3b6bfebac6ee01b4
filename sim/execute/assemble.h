// Which timeline do the op times of all ranks make up?
#pragma once

#include <vector>

#include "result/timeline.h"
#include "schedule/schedule.h"
#include "schedule/tasks.h"

namespace rehearse {

// `spans`: by rank, of its first ops, on one clock. The timeline begins with the first op. A message begins
// when both sides are ready, a collective when all ranks are. Ops of the compute stream each begin by
// themselves.
Timeline assemble(const Tasks& tasks, const Schedule& schedule, std::vector<std::vector<Span>> spans);

}  // namespace rehearse
