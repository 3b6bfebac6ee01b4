#include "plan/sharding.h"

namespace rehearse {

namespace {

double bytes_of(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

}  // namespace

Sharding sharding(const Plan& plan) {
  const int ranks = shard_size(plan);
  const bool keeps_whole = plan.zero < 2 || !reduces_each_microbatch(plan);
  return {plan.zero >= 3 && plan.reshard_after_forward ? ranks : 1, keeps_whole ? 1 : ranks, ranks};
}

int shard_size(const Plan& plan) {
  if (plan.zero == 0) return 1;
  return plan.zero_shard > 0 ? plan.zero_shard : plan.dp;
}

int shard_replicas(const Plan& plan) {
  return plan.zero == 0 ? 1 : plan.dp / shard_size(plan);
}

std::vector<int> shard_group(const RankGrid& grid, const Plan& plan, int rank) {
  if (plan.zero == 0) return grid.group(rank, Axis::dp);
  const int size = shard_size(plan);
  const int own = grid.coordinates(rank)[static_cast<std::size_t>(Axis::dp)];
  return grid.subgroup(rank, Axis::dp, own / size * size, size, 1);
}

std::vector<int> replica_group(const RankGrid& grid, const Plan& plan, int rank) {
  const int size = shard_size(plan);
  const int own = grid.coordinates(rank)[static_cast<std::size_t>(Axis::dp)];
  return grid.subgroup(rank, Axis::dp, own % size, shard_replicas(plan), size);
}

bool reduces_each_microbatch(const Plan& plan) {
  return plan.zero >= 2 && plan.reduce_each_microbatch;
}

double parameter_bytes(const Plan& plan) {
  return bytes_of(plan.precision);
}

double gradient_wire_bytes(const Plan& plan) {
  return bytes_of(plan.grad_reduce);
}

}  // namespace rehearse
