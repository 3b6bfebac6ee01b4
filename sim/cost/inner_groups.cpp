#include "cost/inner_groups.h"

#include <tuple>
#include <vector>

#include "cost/even.h"

namespace rehearse {

InnerGroups::InnerGroups(const Plan& plan, const Cluster& cluster)
    : cluster_(cluster), lie_evenly_(lies_evenly(plan, cluster)), gpus_(plan.gpus()), groups_(plan) {}

const GroupShape& InnerGroups::of(CommGroup group) {
  const auto known = shapes_.find(group);
  return known != shapes_.end() ? known->second : shapes_.emplace(group, slowest(group)).first->second;
}

GroupShape InnerGroups::slowest(CommGroup group) const {
  GroupShape slowest = group_shape(cluster_, groups_.ranks(group, 0));
  if (lie_evenly_ || group == CommGroup::world) return slowest;
  const auto spread = [](const GroupShape& shape) {
    return std::tuple(shape.nodes, shape.per_nic, -shape.fewest_nics, !shape.in_island);
  };
  for (int rank = 1; rank < gpus_; ++rank) {
    const std::vector<int> ranks = groups_.ranks(group, rank);
    if (ranks.front() != rank) continue;
    const GroupShape shape = group_shape(cluster_, ranks);
    if (spread(shape) > spread(slowest)) slowest = shape;
  }
  return slowest;
}

}  // namespace rehearse
