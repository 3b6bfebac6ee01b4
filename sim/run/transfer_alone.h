// How long do the flows of a task take on the links when no other task uses them?
#pragma once

#include <vector>

#include "run/loads.h"

namespace rehearse {

// Seconds that the fullest link of the task needs for all of its flows. `bytes`: scratch by link, zero before
// and after.
double transfer_alone_s(const Loads& loads, TaskId task, std::vector<double>& bytes);

}  // namespace rehearse
