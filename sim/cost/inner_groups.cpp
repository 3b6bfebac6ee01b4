#include "cost/inner_groups.h"

#include <numeric>
#include <tuple>
#include <vector>

#include "cost/even.h"

namespace rehearse {

InnerGroups::InnerGroups(const Plan& plan, const Cluster& cluster)
    : cluster_(cluster),
      lie_evenly_(lies_evenly(plan, cluster)),
      grid_(plan),
      experts_(RankGrid::of_experts(plan)) {}

const GroupShape& InnerGroups::of(const Collective& collective) {
  if (collective.of_all) return all_ranks();
  const bool of_experts = collective.of_experts;
  auto& shape = (of_experts ? expert_groups_ : groups_)[static_cast<std::size_t>(collective.axis)];
  if (!shape) shape = slowest(of_experts ? experts_ : grid_, collective.axis);
  return *shape;
}

GroupShape InnerGroups::slowest(const RankGrid& grid, Axis axis) const {
  GroupShape slowest = group_shape(cluster_, grid.group(0, axis));
  if (lie_evenly_) return slowest;
  const auto spread = [](const GroupShape& shape) {
    return std::tuple(shape.nodes, shape.per_nic, -shape.fewest_nics, !shape.in_island);
  };
  for (int rank = 1; rank < grid.size(); ++rank) {
    if (grid.coordinates(rank)[static_cast<std::size_t>(axis)] != 0) continue;
    const GroupShape shape = group_shape(cluster_, grid.group(rank, axis));
    if (spread(shape) > spread(slowest)) slowest = shape;
  }
  return slowest;
}

const GroupShape& InnerGroups::all_ranks() {
  if (!all_) {
    std::vector<int> ranks(static_cast<std::size_t>(grid_.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    all_ = group_shape(cluster_, ranks);
  }
  return *all_;
}

}  // namespace rehearse
