// When does each task begin and end on the modelled cluster, where flows that meet on a link share it?
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "result/timeline.h"
#include "run/loads.h"
#include "schedule/tasks.h"

namespace rehearse {

struct SimulationStatistics {
  std::uint64_t timers = 0;
  std::uint64_t flows = 0;
};

// Drives SimGrid: timers for fixed times, flows (max-min fair) for shared links. One run of a Simulator.
Timeline simulate(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                  SimulationStatistics* statistics = nullptr);

// Several runs, one after the other, each begun at 0. All cross the links of `links`. At most one a process.
class Simulator {
 public:
  explicit Simulator(const Loads& links);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // std::logic_error where the loads have other links, or the schedule deadlocks.
  Timeline run(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
               SimulationStatistics* statistics = nullptr);

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

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
