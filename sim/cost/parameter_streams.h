// Which kernels stream over a microbatch's parameters and gradients, beside those that its Work lists?
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rehearse {

// Bytes that each such kernel reads and writes for one element of every parameter, by pass. The kernels are:
// - FSDP's copies out of the gathered buffer and into the reduced one (plan/sharding.h, copies());
// - sums of gradients that are kept in another type (plan/recipe.h, addition_bytes());
// - autocast's copies of the weights.
//
// Kernels that run once a step are not included.
struct ParameterStreams {
  std::vector<double> forward, backward_input, backward_weight;
  std::vector<double> frozen_forward;  // for elements of frozen parameters
};
ParameterStreams parameter_streams(const Plan& plan);

}  // namespace rehearse
