#include "execute/groups.h"

#include <algorithm>
#include <string>

#include "plan/comm_group.h"

namespace rehearse {

// All ranks call connect() in the same order.
Groups connect_groups(const Training& training, kernels::World& world) {
  const Plan& plan = training.plan;
  const CommGroups groups_of(plan);
  const int rank = world.rank();
  const auto connect = [&](const std::string& name, CommGroup group) {
    const std::vector<int> ranks = groups_of.ranks(group, rank);
    const bool is_member = std::ranges::find(ranks, rank) != ranks.end();
    return ranks.size() > 1 && is_member ? world.connect(name, ranks) : nullptr;
  };
  const auto connect_holders = [&](const std::string& prefix, CommGroup shards, CommGroup replicas) {
    Groups::Holders holders;
    holders.gradients = connect(prefix + "gradients", shards);
    holders.parameters = connect(prefix + "parameters", shards);
    holders.replicas = connect(prefix + "replicas", replicas);
    return holders;
  };
  Groups groups;
  groups.tensor = connect("tensor", CommGroup::tensor);
  groups.context = connect("context", CommGroup::context);
  groups.forward = connect("forward", CommGroup::pipeline);
  groups.backward = connect("backward", CommGroup::pipeline);
  groups.dense = connect_holders("", CommGroup::shards, CommGroup::shard_replicas);
  if (training.model.experts) {
    groups.expert = connect("expert", CommGroup::expert);
    groups.expert_tensor = connect("expert tensor", CommGroup::expert_tensor);
    groups.experts = connect_holders("expert ", CommGroup::expert_shards, CommGroup::expert_replicas);
  }
  if (plan.sync_step) groups.step = connect("step", CommGroup::world);
  if (training.model.shares_embedding()) groups.tied = connect("tied", CommGroup::embedding);
  return groups;
}

}  // namespace rehearse
