#include "alike.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "cost/collectives.h"
#include "plan/sharding.h"

namespace rehearse::properties {

namespace {

using Shape = std::tuple<int, int, double, bool>;

Shape shape_of(const Cluster& cluster, const std::vector<int>& ranks) {
  const GroupShape shape = group_shape(cluster, ranks);
  return {shape.members, shape.nodes, shape.per_nic, shape.in_island};
}

// How a rank's groups lie, and with how many ranks of its stage it shares its NIC.
std::vector<Shape> surroundings(const Experiment& experiment, const RankGrid& grid, const RankGrid& experts,
                                int rank) {
  const Cluster& cluster = experiment.cluster;
  const Plan& plan = experiment.plan;
  const int gpus = cluster.node.gpus;
  std::vector<Shape> shapes;
  for (const auto& ranks :
       {grid.group(rank, Axis::tp), grid.group(rank, Axis::cp), grid.replicas(rank),
        shard_group(grid, plan, rank), replica_group(grid, plan, rank), experts.group(rank, Axis::tp),
        experts.group(rank, Axis::ep), experts.group(rank, Axis::dp)})
    shapes.push_back(shape_of(cluster, ranks));
  for (const int other : grid.group(rank, Axis::pp)) shapes.push_back(shape_of(cluster, {rank, other}));
  int beside = 0;
  const auto stage = grid.coordinates(rank)[static_cast<std::size_t>(Axis::pp)];
  const int first = rank / gpus * gpus;
  for (int other = first; other < std::min(first + gpus, grid.size()); ++other)
    beside += grid.coordinates(other)[static_cast<std::size_t>(Axis::pp)] == stage &&
              cluster.nic_of(other - first) == cluster.nic_of(rank - first);
  shapes.emplace_back(beside, 0, 0, false);
  return shapes;
}

}  // namespace

bool replicas_are_alike(const Experiment& experiment) {
  const Cluster& cluster = experiment.cluster;
  if (!experiment.conditions.slow.empty() || !cluster.node.wiring.empty() || has_shared_links(cluster.fabric))
    return false;
  const RankGrid grid(experiment.plan), experts = RankGrid::of_experts(experiment.plan);
  std::map<int, std::vector<Shape>> of_stage;
  for (int rank = 0; rank < grid.size(); ++rank) {
    std::vector<Shape> shapes = surroundings(experiment, grid, experts, rank);
    const int stage = grid.coordinates(rank)[static_cast<std::size_t>(Axis::pp)];
    const auto [known, is_new] = of_stage.try_emplace(stage, shapes);
    if (!is_new && known->second != shapes) return false;
  }
  return true;
}

}  // namespace rehearse::properties
