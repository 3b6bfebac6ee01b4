// Which ranks divide which piece of the model state, and what do they put on the wire for it?
//
// Rajbhandari et al. 2020 (ZeRO), sections 5 and 7; sharding inside groups only: Zhao et al. 2023 (PyTorch
// FSDP), section 3.2.2.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/ranks.h"

namespace rehearse {

// Over how many data-parallel ranks each piece is divided; 1: every rank holds all of it.
struct Sharding {
  int parameters = 1;
  int gradients = 1;
  int optimizer = 1;
};
Sharding sharding(const Plan& plan);

// Ranks of one sharding group, dp where there is but one; 1 without ZeRO.
int shard_size(const Plan& plan);

// Sharding groups that hold the same state and sum their gradients; 1 without ZeRO.
int shard_replicas(const Plan& plan);

// The ranks that hold each other's shards (without ZeRO: all data-parallel peers), and those that hold the
// same shard in other groups. Sharding groups are runs of neighbours, so that they stay within few nodes.
std::vector<int> shard_group(const RankGrid& grid, const Plan& plan, int rank);
std::vector<int> replica_group(const RankGrid& grid, const Plan& plan, int rank);

// Whether each microbatch's backward ends with a reduction of its own: gradients cannot be added up where
// they are not kept.
bool reduces_each_microbatch(const Plan& plan);

// Bytes of one parameter as it is computed with and gathered, of its gradient on the wire.
double parameter_bytes(const Plan& plan);
double gradient_wire_bytes(const Plan& plan);

}  // namespace rehearse
