#include "cost/parameter_streams.h"

#include "plan/recipe.h"
#include "plan/sharding.h"

namespace rehearse {

ParameterStreams parameter_streams(const Plan& plan) {
  ParameterStreams streams;
  if (const double cast = weight_cast_bytes(plan); cast > 0) streams.forward = {cast};
  streams.backward_weight = addition_bytes(plan);
  const Copies of = copies(plan);
  if (of.reduce > 0 && reduces_each_microbatch(plan)) streams.backward_weight.push_back(of.reduce);
  if (of.gather == 0 || !gathers_each_microbatch(plan)) return streams;
  streams.forward = streams.frozen_forward = {of.gather};
  if (plan.reshard_after_forward) streams.backward_input = {of.gather};
  return streams;
}

}  // namespace rehearse
