// How long does a step take by the experiment's own engine, where a process may run SimGrid but once?
#pragma once

#include <optional>

#include "run/iteration.h"

namespace rehearse {

// Step time, found in a process of its own where the engine is SimGrid. Nothing where that fails.
std::optional<double> step_time_apart(const Experiment& experiment);

}  // namespace rehearse
