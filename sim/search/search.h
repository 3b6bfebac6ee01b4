// Which of many plans are best: fastest, and fastest for the memory that they need?
#pragma once

#include <functional>
#include <vector>

#include "run/iteration.h"

namespace rehearse {

struct SearchOptions {
  std::size_t top = 10;  // plans to find
  int threads = 1;
  bool prune = true;  // false: run every plan that fits
  std::function<bool()> is_stopped = [] {
    return false;
  };  // asked now and then; the best so far is the answer
};

// A plan that fits and leaves the headroom, as the reference engine runs it.
struct FoundPlan {
  std::size_t index = 0;  // into the plans given
  double step_time_s = 0;
  double needed_bytes = 0;  // of its fullest GPU
};

struct SearchResult {
  std::vector<FoundPlan> best;     // the fastest, at most `top`; of equal ones those that need less memory
  std::vector<FoundPlan> pareto;   // no plan is faster with as little memory; fastest first
  std::size_t does_not_fit = 0;    // with the experiment's headroom
  std::size_t below_headroom = 0;  // fit, but not with the headroom
  std::size_t pruned = 0;          // fit, but cannot be among the best nor on the front
  std::size_t run = 0;
  std::size_t left = 0;  // not examined when the search was stopped
};

// The same `best` and `pareto` as if every plan were run, and the same counts on any number of threads. A
// plan is pruned only when its least step time (search/bounds.h) is longer than the times of `top` plans that
// ran, and of one that needs no more memory. Each of `plans` is legal on `experiment`'s model, cluster and
// profile. Plans of one family (search/family.h) that follow each other share work. The plan and engine of
// `experiment` are not used. InputError where the bounds do not hold: ranks that do not step together, GPUs
// of several kinds, durations that vary.
SearchResult search(const Experiment& experiment, const std::vector<Plan>& plans,
                    const SearchOptions& options);

}  // namespace rehearse
