// Between which ranks does a message go?
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/ranks.h"

namespace rehearse {

// Process groups. Those of collectives inside ops come first.
enum class CommGroup : std::uint8_t {
  tensor,
  context,
  expert_tensor,  // tensor-parallel ranks of one expert
  expert,         // ranks that divide the experts of a layer
  shards,         // ranks that hold each other's shards of parameters outside experts; without ZeRO: replicas
  shard_replicas,  // ranks that hold the same shard in other sharding groups
  expert_shards,   // the same two of experts' parameters
  expert_replicas,
  pipeline,
  embedding,  // first and last stage
  world,
  host,  // a rank and its host
};
inline constexpr std::size_t kInnerGroups = 4;

// Where a collective's time is booked, and along which ranks' coordinates its members differ.
constexpr Axis axis_of(CommGroup group) {
  switch (group) {
    case CommGroup::tensor:
    case CommGroup::expert_tensor:
      return Axis::tp;
    case CommGroup::context:
      return Axis::cp;
    case CommGroup::expert:
      return Axis::ep;
    case CommGroup::pipeline:
    case CommGroup::embedding:
      return Axis::pp;
    default:
      return Axis::dp;
  }
}

class CommGroups {
 public:
  explicit CommGroups(const Plan& plan);

  // The members of the group that `rank` is in. Sharding groups are runs of neighbours, so that they stay
  // within few nodes.
  std::vector<int> ranks(CommGroup group, int rank) const;

 private:
  // Neighbours that hold each other's shards, and how many such runs there are.
  struct Runs {
    int size = 1, count = 1;
  };

  RankGrid grid_, experts_;
  Runs runs_, expert_runs_;
  int last_;  // pipeline rank of the last stage
};

// Ranks in a group, by which all groups of a kind are alike.
int group_size(CommGroup group, const Plan& plan);

}  // namespace rehearse
