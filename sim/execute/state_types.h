// In which types does a rank keep parameters, gradients and the optimizer's state?
#pragma once

#include "kernels/device.h"
#include "plan/plan.h"

namespace rehearse {

// The types that the plan's recipe asks for (plan/recipe.h).
struct StateTypes {
  kernels::Type value = kernels::Type::fp32;             // as kernels read it and ranks gather it
  kernels::Type fresh_gradient = kernels::Type::fp32;    // as a microbatch's backward pass adds to it
  kernels::Type gradient = kernels::Type::fp32;          // as it is kept over microbatches
  kernels::Type wire = kernels::Type::fp32;              // as ranks sum it
  kernels::Type stepped_gradient = kernels::Type::fp32;  // as the optimizer reads it
  kernels::Type moment = kernels::Type::fp32;
  bool has_master = false;  // an fp32 weight beside the value, which is its rounding
  kernels::Place optimizer = kernels::Place::device;  // where the state is kept and updated
};
StateTypes state_types(const Plan& plan);

}  // namespace rehearse
