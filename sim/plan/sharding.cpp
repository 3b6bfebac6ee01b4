#include "plan/sharding.h"

#include "plan/frameworks/traits.h"
#include "plan/recipe.h"

namespace rehearse {

namespace {

double bytes_of(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

Sharding over(int ranks, const Plan& plan) {
  const bool keeps_whole = plan.zero < 2 || !reduces_each_microbatch(plan);
  return {plan.zero >= 3 && plan.reshard_after_forward ? ranks : 1, keeps_whole ? 1 : ranks, ranks};
}

}  // namespace

Sharding sharding(const Plan& plan) {
  return over(shard_size(plan), plan);
}

Sharding expert_sharding(const Plan& plan) {
  return over(expert_shard_size(plan), plan);
}

int shard_size(const Plan& plan) {
  if (plan.zero == 0) return 1;
  return plan.zero_shard > 0 ? plan.zero_shard : plan.dp * plan.cp;
}

int expert_shard_size(const Plan& plan) {
  if (plan.zero == 0) return 1;
  return plan.edp() == plan.dp * plan.cp ? shard_size(plan) : plan.edp();
}

int shard_replicas(const Plan& plan) {
  return plan.zero == 0 ? 1 : plan.dp * plan.cp / shard_size(plan);
}

bool reduces_each_microbatch(const Plan& plan) {
  return plan.zero >= 2 && plan.reduce_each_microbatch;
}

bool drops_after_backward(const Plan& plan) {
  return plan.zero == 3 && plan.pp == 1 && (traits(plan).fsdp != Fsdp::flat || reduces_each_microbatch(plan));
}

bool gathers_each_microbatch(const Plan& plan) {
  return plan.zero == 3 && (plan.reshard_after_forward || drops_after_backward(plan));
}

bool gathers_by_unit(const Plan& plan) {
  return plan.zero == 3 || plan.overlap_param_gather;
}

bool owns_parameters(const Plan& plan) {
  return traits(plan).owners_broadcast && plan.zero == 1 && shard_size(plan) > 1;
}

bool scatters_gradients(const Plan& plan) {
  if (traits(plan).all_reduces_sharded) return plan.zero > 1;
  const bool reduces_whole = owns_parameters(plan) || exchanges_lists(plan);
  return plan.zero > 0 && !(reduces_whole && shard_replicas(plan) == 1);
}

bool exchanges_lists(const Plan& plan) {
  return traits(plan).gathers_lists && plan.zero == 3;
}

Copies copies(const Plan& plan) {
  if (traits(plan).fsdp == Fsdp::none || plan.zero < 2 || shard_size(plan) == 1) return {};
  const double value = bytes_of(plan.precision), wire = gradient_wire_bytes(plan);
  if (traits(plan).fsdp != Fsdp::flat) return {2 * parameter_bytes(plan), value + wire};
  const double cast = wire == value ? 0 : value + wire;
  return {0, 2 * value + cast + 2 * wire};
}

double bucket_copies(const Plan& plan) {
  constexpr double kOfLists = 6;
  return exchanges_lists(plan) ? kOfLists : traits(plan).bucket_copy_bytes;
}

double parameter_bytes(const Plan& plan) {
  const bool in_fp8 = (holds_fp8_weights(plan) && plan.fp8_scaling != Fp8Scaling::mx) ||
                      plan.fp8_scaling == Fp8Scaling::tensor_gathered;
  return in_fp8 ? 1 : bytes_of(plan.precision);
}

double frozen_parameter_bytes(const Plan& plan) {
  return bytes_of(plan.precision);
}

double gradient_wire_bytes(const Plan& plan) {
  return bytes_of(plan.grad_reduce);
}

}  // namespace rehearse
