// How long does a step take, or at least, when its report is not needed?
#pragma once

#include "run/iteration.h"

namespace rehearse {

// Both take the kernel shapes that other plans already met. `kernels` belong to the experiment's cluster, its
// profile and the plan's precision; nullptr: none are known.

// Report::step_time_s of run_iteration().
double step_time_s(const Experiment& experiment, KernelTimes* kernels = nullptr);

// A lower bound on it for Engine::simgrid, without jitter and without SimGrid (run/least_time.h). Only one
// instance of each pipeline rank is looked at, although SimGrid may run more.
double least_simulated_s(const Experiment& experiment, KernelTimes* kernels = nullptr);

}  // namespace rehearse
