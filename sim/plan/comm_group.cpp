#include "plan/comm_group.h"

#include <array>
#include <numeric>

#include "plan/sharding.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

// The run of `size` neighbours around `rank`, among the ranks with the same parameters.
std::vector<int> run_of(const RankGrid& grid, int size, int rank) {
  const int first = grid.replica_position(rank) / size * size;
  std::vector<int> members;
  for (int i = 0; i < size; ++i) members.push_back(grid.replica_at(rank, first + i));
  return members;
}

// Ranks at the position of `rank` in each of `runs` such runs.
std::vector<int> across_runs(const RankGrid& grid, int size, int runs, int rank) {
  const int own = grid.replica_position(rank) % size;
  std::vector<int> members;
  for (int i = 0; i < runs; ++i) members.push_back(grid.replica_at(rank, own + i * size));
  return members;
}

}  // namespace

const char* to_string(CommGroup group) {
  constexpr std::array kNames = {"tensor",   "context",        "expert_tensor", "expert",
                                 "shards",   "shard_replicas", "expert_shards", "expert_replicas",
                                 "pipeline", "embedding",      "world",         "host"};
  static_assert(kNames.size() == static_cast<std::size_t>(CommGroup::host) + 1);
  return kNames[static_cast<std::size_t>(group)];
}

CommGroups::CommGroups(const Plan& plan)
    : grid_(plan), experts_(RankGrid::of_experts(plan)), last_(pipeline_rank_of(plan.stages() - 1, plan)) {
  runs_ = {plan.dp * plan.cp, 1};
  expert_runs_ = {plan.edp(), 1};
  if (plan.zero == 0) return;
  runs_ = {shard_size(plan), shard_replicas(plan)};
  expert_runs_ = {expert_shard_size(plan), plan.edp() / expert_shard_size(plan)};
}

std::vector<int> CommGroups::ranks(CommGroup group, int rank) const {
  switch (group) {
    case CommGroup::tensor:
    case CommGroup::context:
    case CommGroup::pipeline:
      return grid_.group(rank, axis_of(group));
    case CommGroup::expert_tensor:
    case CommGroup::expert:
      return experts_.group(rank, axis_of(group));
    case CommGroup::shards:
      return run_of(grid_, runs_.size, rank);
    case CommGroup::shard_replicas:
      return across_runs(grid_, runs_.size, runs_.count, rank);
    case CommGroup::expert_shards:
      return run_of(experts_, expert_runs_.size, rank);
    case CommGroup::expert_replicas:
      return across_runs(experts_, expert_runs_.size, expert_runs_.count, rank);
    case CommGroup::embedding: {
      const std::vector<int> pipeline = grid_.group(rank, Axis::pp);
      if (last_ == 0) return {pipeline.front()};
      return {pipeline.front(), pipeline[static_cast<std::size_t>(last_)]};
    }
    case CommGroup::world: {
      std::vector<int> all(static_cast<std::size_t>(grid_.size()));
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    case CommGroup::host:
      break;
  }
  return {rank};
}

int CommGroups::size(CommGroup group) const {
  switch (group) {
    case CommGroup::tensor:
    case CommGroup::context:
    case CommGroup::pipeline:
      return grid_.extent(axis_of(group));
    case CommGroup::expert_tensor:
    case CommGroup::expert:
      return experts_.extent(axis_of(group));
    case CommGroup::shards:
      return runs_.size;
    case CommGroup::shard_replicas:
      return runs_.count;
    case CommGroup::expert_shards:
      return expert_runs_.size;
    case CommGroup::expert_replicas:
      return expert_runs_.count;
    case CommGroup::embedding:
      return last_ == 0 ? 1 : 2;
    case CommGroup::world:
      return grid_.size();
    case CommGroup::host:
      break;
  }
  return 1;
}

int group_size(CommGroup group, const Plan& plan) {
  return CommGroups(plan).size(group);
}

}  // namespace rehearse
