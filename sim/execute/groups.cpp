#include "execute/groups.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "plan/ranks.h"
#include "plan/sharding.h"
#include "plan/stages.h"

namespace rehearse {

// The order of connect() is the same on all ranks.
Groups connect_groups(const Training& training, kernels::World& world) {
  const Plan& plan = training.plan;
  const RankGrid grid(plan);
  const auto connect = [&](const std::string& name, const std::vector<int>& members) {
    return members.size() > 1 ? world.connect(name, members) : nullptr;
  };
  const int rank = world.rank();
  const std::vector<int> pipeline = grid.group(rank, Axis::pp);
  const auto connect_holders = [&](const std::string& prefix, const std::vector<int>& shards,
                                   const std::vector<int>& replicas) {
    Groups::Holders holders;
    holders.gradients = connect(prefix + "gradients", shards);
    holders.parameters = connect(prefix + "parameters", shards);
    if (plan.zero > 0) holders.replicas = connect(prefix + "replicas", replicas);
    return holders;
  };
  Groups groups;
  groups.tensor = connect("tensor", grid.group(rank, Axis::tp));
  groups.context = connect("context", grid.group(rank, Axis::cp));
  groups.forward = connect("forward", pipeline);
  groups.backward = connect("backward", pipeline);
  groups.dense = connect_holders("", shard_group(grid, plan, rank), replica_group(grid, plan, rank));
  if (training.model.experts) {
    const RankGrid experts = RankGrid::of_experts(plan);
    groups.expert = connect("expert", experts.group(rank, Axis::ep));
    groups.expert_tensor = connect("expert tensor", experts.group(rank, Axis::tp));
    groups.experts =
        connect_holders("expert ", expert_shard_group(plan, rank), expert_replica_group(plan, rank));
  }
  if (plan.sync_step) {
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    groups.step = connect("step", all);
  }
  const int last = pipeline_rank_of(plan.stages() - 1, plan);
  const std::vector<int> ends = {pipeline.front(), pipeline[static_cast<std::size_t>(last)]};
  if (training.model.shares_embedding() && last != 0 && std::ranges::find(ends, rank) != ends.end())
    groups.tied = connect("tied", ends);
  return groups;
}

}  // namespace rehearse
