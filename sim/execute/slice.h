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

  // Elements first .. last of those that the rank holds, as stretches that one call each can fill.
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

// Split as in Megatron-LM: queries, keys and values by heads, gate and up each by width, tables by
// vocabulary, rounded up to equal parts. Other parameters are whole on every rank.
Slice slice_of(const Tensor& parameter, int tensor_rank, int ranks);

// Slice of an experts' parameter, whose matrices are stacked: the matrices of the rank's experts, with gate
// and up each split by width. `at` is the rank's place in RankGrid::of_experts().
Slice expert_slice_of(const Tensor& parameter, const Model& model, const Plan& plan, const Coordinates& at);

// Initial values: a number for each (seed, parameter, element), the same for every split. Matrices are
// uniform with deviation 0.02 (Radford et al. 2019), norms around 1. Steps and decays of a state space are in
// the range in which it is trained. Biases are not 0, so that a misplaced one shows. The caller sets the
// output and the element numbers.
kernels::Randomise initial_values(std::uint64_t seed, const std::string& parameter);

}  // namespace rehearse
