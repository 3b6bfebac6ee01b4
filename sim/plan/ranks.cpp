#include "plan/ranks.h"

#include <algorithm>

namespace rehearse {

RankGrid::RankGrid(const Plan& plan) : RankGrid({plan.tp, plan.cp, 1, plan.dp, plan.pp}, plan.order) {}

RankGrid RankGrid::of_experts(const Plan& plan) {
  return RankGrid({plan.etp, 1, plan.ep, plan.edp(), plan.pp}, plan.order);
}

RankGrid::RankGrid(const std::array<int, 5>& extent, const std::array<Axis, 5>& order)
    : extent_(extent), order_(order), size_(1) {
  for (const Axis axis : order_) {
    stride_[static_cast<std::size_t>(axis)] = size_;
    size_ *= extent_[static_cast<std::size_t>(axis)];
  }
}

Coordinates RankGrid::coordinates(int rank) const {
  Coordinates coordinates{};
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    coordinates[axis] = rank / stride_[axis] % extent_[axis];
  }
  return coordinates;
}

int RankGrid::rank(const Coordinates& coordinates) const {
  int rank = 0;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) rank += coordinates[axis] * stride_[axis];
  return rank;
}

std::vector<int> RankGrid::group(int rank, Axis axis) const {
  const auto along = static_cast<std::size_t>(axis);
  const int first = rank - coordinates(rank)[along] * stride_[along];
  std::vector<int> members;
  for (int i = 0; i < extent_[along]; ++i) members.push_back(first + i * stride_[along]);
  return members;
}

std::vector<int> RankGrid::subgroup(int rank, Axis axis, int first, int count, int step) const {
  const std::vector<int> all = group(rank, axis);
  std::vector<int> members;
  for (int i = 0; i < count; ++i) members.push_back(all.at(static_cast<std::size_t>(first + i * step)));
  return members;
}

std::vector<int> RankGrid::replicas(int rank) const {
  std::vector<int> members;
  for (const int peer : group(rank, Axis::dp)) {
    const std::vector<int> ring = group(peer, Axis::cp);
    members.insert(members.end(), ring.begin(), ring.end());
  }
  std::sort(members.begin(), members.end());
  return members;
}

}  // namespace rehearse
