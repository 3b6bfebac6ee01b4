// Between which ranks does a message go?
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/ranks.h"

namespace rehearse {

// Process groups. The first kInnerGroups have collectives inside ops.
enum class CommGroup : std::uint8_t {
  tensor,
  context,
  expert_tensor,  // tensor-parallel ranks of one expert
  expert,         // ranks that divide the experts of a layer
  shards,         // ranks that hold each other's shards of parameters outside experts; without ZeRO: replicas
  shard_replicas,   // ranks that hold the same shard in other sharding groups
  expert_shards,    // as `shards`, of experts' parameters
  expert_replicas,  // as `shard_replicas`
  pipeline,
  embedding,  // first and last stage
  world,
  host,  // a rank and its host
};
inline constexpr std::size_t kInnerGroups = 4;

// The enumerator's own name: "expert_shards".
const char* to_string(CommGroup group);

// The axis that a collective's time counts towards. Members of the group differ along it.
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

  // The members of the group of `rank`. Sharding groups are runs of neighbours, so that they stay within few
  // nodes.
  std::vector<int> ranks(CommGroup group, int rank) const;

  // Number of members; equal in all groups of a kind.
  int size(CommGroup group) const;

  // Whether a message to the group leaves the GPU.
  bool has_peers(CommGroup group) const { return group == CommGroup::host || size(group) > 1; }

 private:
  // `count` runs of `size` neighbours. Members of a run hold each other's shards.
  struct Runs {
    int size = 1, count = 1;
  };

  RankGrid grid_, experts_;
  Runs runs_, expert_runs_;
  int last_;  // pipeline rank of the last stage
};

// CommGroups::size().
int group_size(CommGroup group, const Plan& plan);

}  // namespace rehearse
