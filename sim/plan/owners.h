// How many elements of a stage does each rank step, and how many the busiest rank?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

// Elements that each of `ranks` owns. The largest parameter is assigned first, each to the rank with the
// fewest elements so far, of several to the first (InternEvo, hybrid_zero_optim.py, _partition_param_list).
// O(n log ranks).
std::vector<double> owned_elements(std::vector<double> parameters, int ranks);

// The same for a stage's parameters outside experts, by rank of a sharding group, where parameters have
// owners (owns_parameters()).
std::vector<double> owned_elements(const Work& work, const Plan& plan, int stage);

// Elements of a stage that one rank steps, for experts and for other parameters: an even share, or the
// elements of the owner that has most.
double stepped_experts(const Work& work, const Plan& plan, int stage);
double stepped_dense(const Work& work, const Plan& plan, int stage);

}  // namespace rehearse
