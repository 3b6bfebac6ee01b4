// What do the passes of a plan take on its GPUs, and which named schedules lay its stages as it does?
#pragma once

#include <string>
#include <vector>

#include "run/iteration.h"
#include "search/order/orders.h"

namespace rehearse {

// The problem of `experiment`'s stages, where its schedule lays them. Each GPU may hold `memory_bytes`:
// state, activations, CUDA's context and NCCL's buffers together; the search then knows the bytes of
// activations that are left.
OrderProblem order_problem(const Experiment& experiment, double memory_bytes);

// The plans of named schedules, with every group of microbatches, whose stages lie where the plan's do.
std::vector<Plan> named_plans(const Plan& plan);

}  // namespace rehearse
