#include "plan/ranks.h"

namespace rehearse {

RankGrid::RankGrid(const Plan& plan) : RankGrid({plan.tp, plan.cp, 1, plan.dp, plan.pp}, plan.order) {}

RankGrid RankGrid::of_experts(const Plan& plan) {
  if (plan.experts_within_dp())
    return RankGrid({plan.etp, plan.cp, plan.ep, plan.dp / plan.ep, plan.pp}, plan.order);
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

std::array<std::size_t, 2> RankGrid::replica_axes() const {
  constexpr auto cp = static_cast<std::size_t>(Axis::cp), dp = static_cast<std::size_t>(Axis::dp);
  for (const Axis axis : order_)
    if (axis == Axis::cp || axis == Axis::dp)
      return axis == Axis::cp ? std::array{cp, dp} : std::array{dp, cp};
  return {cp, dp};
}

int RankGrid::replica_position(int rank) const {
  const auto [near, far] = replica_axes();
  const Coordinates at = coordinates(rank);
  return at[far] * extent_[near] + at[near];
}

int RankGrid::replica_at(int rank, int position) const {
  const auto [near, far] = replica_axes();
  Coordinates at = coordinates(rank);
  at[near] = position % extent_[near];
  at[far] = position / extent_[near];
  return this->rank(at);
}

std::vector<int> RankGrid::replicas(int rank) const {
  const auto [near, far] = replica_axes();
  std::vector<int> members;
  for (int i = 0; i < extent_[near] * extent_[far]; ++i) members.push_back(replica_at(rank, i));
  return members;
}

}  // namespace rehearse
