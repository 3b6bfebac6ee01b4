// What streams over a microbatch's parameters and gradients beside the kernels that its Work lists?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// The bytes that each such kernel reads and writes for an element of every parameter, by pass: copies of FSDP
// out of what it gathered and into what it reduces (plan/sharding.h, copies()), sums of gradients that are
// kept in another type (plan/recipe.h, addition_bytes()), autocast's copies of the weights. What comes once a
// step is not among them.
struct ParameterStreams {
  std::vector<double> forward, backward_input, backward_weight;
};
ParameterStreams parameter_streams(const Plan& plan);

}  // namespace rehearse
