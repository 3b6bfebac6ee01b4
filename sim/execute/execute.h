// How long does a training step take when it is run?
#pragma once

#include <vector>

#include "execute/crew.h"
#include "execute/training.h"
#include "result/timeline.h"

namespace rehearse {

struct ExecuteOptions {
  int warmup = 2;  // steps that are not counted
  int iterations = 5;
  Watch watch;
};

struct Execution {
  Timeline timeline;                          // of the step whose time is the (lower) median
  std::vector<double> step_times_s;           // of the counted steps
  std::vector<double> losses;                 // of all steps
  std::vector<double> peak_activation_bytes;  // by rank
};

// InputError when check_schedule() or not_executable() finds anything, or without an iteration; otherwise
// throws as Crew does.
Execution execute(const Training& training, const ExecuteOptions& options);

}  // namespace rehearse
