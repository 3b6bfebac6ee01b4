// When does each task begin and end on the modelled cluster, where flows that meet on a link share it?
#pragma once

#include <functional>
#include <string>

#include "result/timeline.h"
#include "run/loads.h"
#include "schedule/tasks.h"

namespace rehearse {

struct SimulationStatistics {
  std::uint64_t timers = 0;
  std::uint64_t flows = 0;
};

// Drives SimGrid: timers for fixed times, flows (max-min fair) for shared links. At most once a process;
// std::logic_error otherwise or when the schedule deadlocks.
Timeline simulate(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                  SimulationStatistics* statistics = nullptr);

// Several iterations, one after the other. All loads cross the links of loads(0). `take` gets each timeline,
// begun at 0.
void simulate_iterations(const Schedule& schedule, const Tasks& tasks, int iterations,
                         const std::function<Loads(int iteration)>& loads,
                         const std::function<void(int iteration, Timeline timeline)>& take);

// Two jobs, each with its own schedule, on the links of both (join_links). `other` starts again whenever it
// has ended, until `own` has ended.
struct Job {
  const Schedule& schedule;
  const Tasks& tasks;
  const Loads& loads;
};
struct Neighbours {
  Timeline own;
  std::vector<double>
      other_step_times_s;  // of the steps that ended before or with `own`; of the first at least
};
Neighbours simulate_neighbours(const Job& own, const Job& other);

std::string simgrid_version();  // of the library that runs, e.g. "3.32.0"

}  // namespace rehearse
