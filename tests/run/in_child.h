// Runs a simulation in a child process, because SimGrid allows one engine per process. A test can then run
// many.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "result/timeline.h"

namespace rehearse {

// The numbers that `simulation` returns, or nothing when the child failed.
std::optional<std::vector<double>> in_child(const std::function<std::vector<double>()>& simulation);

// Begin and end of every op of every rank, in order.
std::vector<double> flatten(const Timeline& timeline);

}  // namespace rehearse
