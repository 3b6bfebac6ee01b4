// How long does a training step take when it is run?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "execute/rank_pool.h"
#include "execute/training.h"
#include "result/timeline.h"

namespace rehearse {

struct ExecuteOptions {
  int warmup = 2;  // steps that are not counted
  int iterations = 5;
  Watch watch;
  // If given: called with the ops that had ended when a run fails, before the error is thrown.
  std::function<void(const PartialRun&)> keep_partial = {};
};

struct Execution {
  Timeline timeline;                          // of the step whose time is the (lower) median
  std::vector<double> step_times_s;           // of the counted steps
  std::vector<double> losses;                 // of all steps
  std::vector<double> gradient_norms;         // the same, where gradients are clipped
  std::vector<double> loss_scales;            // the same, after the step, where the loss is scaled
  std::vector<int> skipped_steps;             // of all, from 0: those whose scaled gradients overflowed
  std::vector<double> peak_activation_bytes;  // by rank
  double tracing_s = 0;                       // of each step, spent on taking the times
  std::string clocks = {};                    // how clocks of several processes are compared
  double clock_error_s = 0;                   // how far times of two processes may be apart
};

// InputError when check_schedule() finds a fault, or without an iteration; otherwise throws like RankPool.
// Without devices, ranks are threads. The timeline and the losses are the first process's.
Execution execute(const Training& training, const ExecuteOptions& options);
Execution execute(const Training& training, const ExecuteOptions& options, DeviceSet device_set);

}  // namespace rehearse
