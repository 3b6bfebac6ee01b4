// Which elements of a whole parameter does a rank hold?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/call/pointwise.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/ranks.h"
#include "plan/work.h"

namespace rehearse {

// Rows of a matrix of outputs x inputs, or columns of it; a vector has one column.
struct Slice {
  struct Rows {
    std::int64_t first = 0;  // of the whole
    std::int64_t count = 0;
  };
  std::vector<Rows> rows;  // in the order in which the rank holds them
  std::int64_t first_column = 0, columns = 1;
  std::int64_t whole_rows = 1, whole_columns = 1;

  std::int64_t whole_elements() const { return whole_rows * whole_columns; }

  // Elements first .. last of those that the rank holds, in stretches that one call can fill each.
  struct Stretch {
    std::int64_t first = 0, count = 0;  // of the rank's
    kernels::Draws whole = {};          // numbers of the same elements in the whole parameter
  };
  std::vector<Stretch> stretches(std::int64_t first, std::int64_t last) const;

  // visit(own, whole) for every element: its index here and in the whole parameter.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    std::int64_t own = 0;
    for (const Rows& run : rows) {
      for (std::int64_t row = run.first; row < run.first + run.count; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          visit(own++, row * whole_columns + first_column + column);
    }
  }
};

// As Megatron-LM splits it: queries, keys and values by heads, gate and up each by width, tables by
// vocabulary, rounded up to equal parts; what is not split is whole on every rank.
Slice slice_of(const Tensor& parameter, int tensor_rank, int ranks);

// Of a parameter of experts, whose matrices lie one below the other: of the rank's experts, gate and up each
// by width. `at` is its place in RankGrid::of_experts().
Slice expert_slice_of(const Tensor& parameter, const Model& model, const Plan& plan, const Coordinates& at);

// What every element starts from: a number for each (seed, parameter, element), the same whatever the split.
// Matrices are uniform with deviation 0.02 (Radford et al. 2019), norms around 1, what a state space steps
// and decays by in the range that it is trained in; biases are not 0, so that one in the wrong place shows.
// Where it goes, and which numbers, is for the caller to say.
kernels::Randomise initial_values(std::uint64_t seed, const std::string& parameter);

}  // namespace rehearse
