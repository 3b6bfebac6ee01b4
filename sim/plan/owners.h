// How much of a stage does each rank step, and how much the busiest of them?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

// Elements that each of `ranks` owns: the largest parameter first, each to the rank that has least so far, of
// several to the first (InternEvo, hybrid_zero_optim.py, _partition_param_list). O(n log ranks).
std::vector<double> owned_elements(std::vector<double> parameters, int ranks);

// The same of a stage's parameters outside experts, by rank of a sharding group, where parameters have owners
// (owns_parameters()).
std::vector<double> owned_elements(const Work& work, const Plan& plan, int stage);

// Elements of a stage that one rank steps, experts' and others: an even share, or what the rank owns that has
// most.
double stepped_experts(const Work& work, const Plan& plan, int stage);
double stepped_dense(const Work& work, const Plan& plan, int stage);

}  // namespace rehearse
