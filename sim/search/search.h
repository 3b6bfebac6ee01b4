// Which of many plans are best: fastest, and fastest for the memory that they need?
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "run/iteration.h"

namespace rehearse {

// Calls run(i) once for every i < count, each in a process of its own, as SimGrid runs once a process.
// Returns the results; NaN for calls that were not made because the search was stopped.
using InProcesses =
    std::function<std::vector<double>(std::size_t count, const std::function<double(std::size_t)>& run)>;

struct SearchOptions {
  std::size_t top = 10;  // plans to find
  int threads = 1;
  InProcesses in_processes = {};  // needed where the experiment's engine is SimGrid
  std::function<bool()> is_stopped = [] {
    return false;
  };  // asked now and then; the best so far is the answer
  // Variants of plan `index` with larger groups of microbatches. The fastest of a plan and its variants takes
  // one place. They are tried where the plan fits, with the bound of the plan: least_step_time() does not
  // depend on groups. They need as much memory as the plan, or more: more forwards wait for their backwards.
  std::function<std::vector<Plan>(std::size_t index)> larger_groups = {};
};

// A plan that fits and leaves the headroom, as the experiment's engine runs it.
struct FoundPlan {
  std::size_t index = 0;  // into the plans given
  int group = 0;          // microbatch_group of a variant with a larger group; 0: the plan as given
  double step_time_s = 0;
  double needed_bytes = 0;  // of its fullest GPU

  bool operator==(const FoundPlan&) const = default;
};

// The front ends at so many times the fastest step: leaner plans that are much slower are many, and each of
// them would be simulated.
inline constexpr double kFrontSteps = 1.25;

struct SearchResult {
  std::vector<FoundPlan> best;     // the fastest, at most `top`; of equal ones those that need less memory
  std::vector<FoundPlan> pareto;   // no plan is faster with as little memory; to kFrontSteps
  std::size_t does_not_fit = 0;    // with the experiment's headroom
  std::size_t below_headroom = 0;  // fit, but not with the headroom
  std::size_t pruned = 0;          // fit, but their bounds exclude them from `best` and `pareto`
  std::size_t referred = 0;        // without SimGrid: bounded by their tasks and links
  std::size_t run = 0;             // by the experiment's engine
  std::size_t left = 0;            // the search was stopped before it ran or excluded them
  std::size_t variants = 0;        // of these counts: with larger groups of microbatches
  // Plans that may be among the best and were not run take this long at least. Places of `best` with less
  // are proven. Infinite where the search ended by itself: all are, and `pareto` too.
  double least_left_s = std::numeric_limits<double>::infinity();

  // The search was stopped before the engine ran a plan. `best` has the least bounds, not step times.
  bool has_only_bounds = false;

  std::size_t proven() const;  // places of `best`
};

// The same `best` and `pareto` as if every plan were run by the experiment's engine, whatever `top`, and the
// same counts on any number of threads. Plans wait in one queue, in the order of a proven lower bound of
// their step time. The first has its bound raised, or is run:
//   1. least_step_time() of its prices (search/bounds.h)
//   2. least_simulated_s() of its tasks and links (run/step_time.h); the engine itself where that is the
//      reference
//   3. SimGrid
// A plan is pruned where its bound is longer than the times of `top` plans that ran, and of one that needs no
// more memory.
//
// Each of `plans` is legal on `experiment`'s model, cluster and profile. Plans of one family
// (search/family.h) that follow each other share work. The plan of `experiment` is not used. InputError where
// the bounds do not hold: ranks that do not step together, GPUs of several kinds, durations that vary.
SearchResult search(const Experiment& experiment, const std::vector<Plan>& plans,
                    const SearchOptions& options);

}  // namespace rehearse
