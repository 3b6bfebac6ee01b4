// Where is each rank in the grid of parallel axes, and which ranks form a group along an axis?
#pragma once

#include <array>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

// Position of a rank along tp, cp, ep, dp, pp (indexed by Axis).
using Coordinates = std::array<int, 5>;

class RankGrid {
 public:
  // The grid of all layers except experts: ep is carved out of tp, cp and dp and stays 0 here.
  explicit RankGrid(const Plan& plan);

  // The grid of the same ranks for experts (Megatron-LM, core/parallel_state.py): tp is plan.etp, ep is
  // plan.ep, dp counts the replicas of an expert, cp stays 0. Before Megatron core 0.10, ep was carved out of
  // dp alone. Replicas are then along cp too.
  static RankGrid of_experts(const Plan& plan);

  int size() const { return size_; }
  int extent(Axis axis) const { return extent_[static_cast<std::size_t>(axis)]; }
  Coordinates coordinates(int rank) const;
  int rank(const Coordinates& coordinates) const;

  // The ranks that differ from `rank` only along `axis`, in order of that coordinate.
  std::vector<int> group(int rank, Axis axis) const;

  // The ranks that differ from `rank` along dp or cp, ascending. They hold the same parameters.
  std::vector<int> replicas(int rank) const;

  // Position of `rank` among its replicas(), and the rank at a position among them.
  int replica_position(int rank) const;
  int replica_at(int rank, int position) const;

 private:
  RankGrid(const std::array<int, 5>& extent, const std::array<Axis, 5>& order);

  // The axis of dp and cp with the closer neighbours, then the other one.
  std::array<std::size_t, 2> replica_axes() const;

  std::array<int, 5> extent_{};  // by Axis
  std::array<int, 5> stride_{};  // by Axis
  std::array<Axis, 5> order_{};
  int size_ = 1;
};

}  // namespace rehearse
