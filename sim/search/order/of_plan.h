// How long do the passes of a plan take on its GPUs, and which named schedules place its stages as it does?
#pragma once

#include <string>
#include <vector>

#include "run/iteration.h"
#include "search/order/orders.h"

namespace rehearse {

// The problem of `experiment`'s stages, placed as by its schedule. Each GPU may use `memory_bytes` for state,
// activations, CUDA's context and NCCL's buffers together. The problem states the bytes that remain for
// activations.
OrderProblem order_problem(const Experiment& experiment, double memory_bytes);

// The plans of named schedules with the plan's placement of stages, for every group of microbatches.
std::vector<Plan> named_plans(const Plan& plan);

}  // namespace rehearse
