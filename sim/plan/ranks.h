// Which rank stands where in the grid of parallel axes, and which ranks form a group along an axis.
#pragma once

#include <array>
#include <vector>

#include "plan/plan.h"

namespace rehearse {

// Position of a rank along tp, cp, ep, dp, pp (indexed by Axis). ep is carved out of dp and cp and stays 0
// here.
using Coordinates = std::array<int, 5>;

class RankGrid {
 public:
  explicit RankGrid(const Plan& plan);

  int size() const { return size_; }
  Coordinates coordinates(int rank) const;
  int rank(const Coordinates& coordinates) const;

  // The ranks that differ from `rank` only along `axis`, in order of that coordinate.
  std::vector<int> group(int rank, Axis axis) const;

  // `count` of that group: its member `first`, and every `step`-th after it.
  std::vector<int> subgroup(int rank, Axis axis, int first, int count, int step) const;

 private:
  std::array<int, 5> extent_{};  // by Axis
  std::array<int, 5> stride_{};  // by Axis
  std::array<Axis, 5> order_{};
  int size_ = 0;
};

}  // namespace rehearse
