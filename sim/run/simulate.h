// When does each task begin and end on the modelled cluster, where flows that meet on a link share it?
#pragma once

#include <string>

#include "result/timeline.h"
#include "run/loads.h"
#include "schedule/tasks.h"

namespace rehearse {

struct SimulationStatistics {
  std::uint64_t timers = 0;
  std::uint64_t flows = 0;
};

// Drives SimGrid: timers for what takes a fixed time, flows (max-min fair) for what shares links.
// At most once a process; std::logic_error otherwise or when the schedule deadlocks.
Timeline simulate(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                  SimulationStatistics* statistics = nullptr);

std::string simgrid_version();  // of the library that runs, e.g. "3.32.0"

}  // namespace rehearse
