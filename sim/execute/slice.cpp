#include "execute/slice.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "execute/random.h"

namespace rehearse {

namespace {

// Each of `parts` follows the ones before it in the whole. A rank holds its share of every part.
Slice share_of_rows(const std::vector<std::int64_t>& parts, std::int64_t columns, int rank, int ranks) {
  Slice slice;
  slice.columns = slice.whole_columns = columns;
  slice.whole_rows = 0;
  for (const std::int64_t rows : parts) {
    slice.rows.push_back({slice.whole_rows + rows / ranks * rank, rows / ranks});
    slice.whole_rows += rows;
  }
  return slice;
}

Slice share_of_columns(std::int64_t rows, std::int64_t columns, int rank, int ranks) {
  Slice slice;
  slice.rows = {{0, rows}};
  slice.whole_rows = rows;
  slice.whole_columns = columns;
  slice.columns = columns / ranks;
  slice.first_column = slice.columns * rank;
  return slice;
}

// Sizes of the whole parts, of which each of `ranks` ranks holds a share.
std::vector<std::int64_t> of_all(std::vector<std::int64_t> parts, int ranks) {
  for (std::int64_t& part : parts) part *= ranks;
  return parts;
}

// Slice of one matrix that has `elements` elements on a rank.
Slice share_of(const RankShare& share, std::int64_t elements, int rank, int ranks) {
  if (share.columns > 0)
    return share_of_columns(elements / share.columns, share.columns * ranks, rank, ranks);
  if (share.rows.empty()) return share_of_columns(1, elements, 0, 1);
  const std::int64_t rows = std::accumulate(share.rows.begin(), share.rows.end(), std::int64_t{0});
  return share_of_rows(of_all(share.rows, ranks), elements / rows, rank, ranks);
}

struct Uniform {
  std::string_view name;
  float mean = 0, spread = 0;
};
// State spaces start with values at which their state has a visible effect: steps of 0.001 to 0.1, decays of
// 1 to 16 a step, and a convolution of four tokens initialized as in PyTorch (mamba-ssm, modules/mamba2.py).
constexpr std::array kOfStateSpaces = {
    Uniform{".step_bias", -4.6F, 2.3F}, Uniform{".decay_log", 1.39F, 1.39F},
    Uniform{".skip", 1, 0.0346410162F}, Uniform{".convolution_weight", 0, 0.5F},
    Uniform{".convolution_bias", 0, 0.5F}};

}  // namespace

Slice slice_of(const Tensor& parameter, int tensor_rank, int ranks) {
  return share_of(parameter.share, static_cast<std::int64_t>(parameter.elements), tensor_rank, ranks);
}

Slice expert_slice_of(const Tensor& parameter, const Model& model, const Plan& plan, const Coordinates& at) {
  const Experts& experts = *model.experts;
  const std::int64_t local = experts.count / plan.ep, first = local * at[static_cast<std::size_t>(Axis::ep)];
  const Slice one = share_of(parameter.share, static_cast<std::int64_t>(parameter.elements) / local,
                             at[static_cast<std::size_t>(Axis::tp)], plan.etp);
  Slice all = one;
  all.rows.clear();
  all.whole_rows = one.whole_rows * experts.count;
  for (std::int64_t expert = first; expert < first + local; ++expert)
    for (const Slice::Rows& rows : one.rows)
      all.rows.push_back({expert * one.whole_rows + rows.first, rows.count});
  return all;
}

// Rows of a matrix that is split by columns are apart in the whole. A first row may begin in its middle.
std::vector<Slice::Stretch> Slice::stretches(std::int64_t first, std::int64_t last) const {
  std::vector<Stretch> all;
  std::int64_t before = 0;
  for (const Rows& run : rows) {
    const std::int64_t end = std::min(last, before + run.count * columns);
    for (std::int64_t own = std::max(first, before); own < end; own += all.back().count) {
      const std::int64_t row = run.first + (own - before) / columns, column = (own - before) % columns;
      const std::int64_t number = row * whole_columns + first_column + column;
      if (columns == whole_columns) {
        all.push_back({own, end - own, {number}});
      } else if (column > 0) {
        all.push_back({own, std::min(columns - column, end - own), {number}});
      } else {
        all.push_back({own, end - own, {number, columns, whole_columns}});
      }
    }
    before += run.count * columns;
  }
  return all;
}

kernels::Randomise initial_values(std::uint64_t seed, const std::string& parameter) {
  constexpr float kSpread = 0.0346410162F;  // sqrt(3) 0.02
  const bool is_norm = parameter.find("norm") != std::string::npos && parameter.ends_with("_weight");
  kernels::Randomise values;
  values.mean = is_norm ? 1.0F : 0.0F;
  values.spread = kSpread;
  for (const auto& [name, mean, spread] : kOfStateSpaces) {
    if (!parameter.ends_with(name)) continue;
    values.mean = mean;
    values.spread = spread;
  }
  values.seed = seed_of(seed, parameter);
  return values;
}

}  // namespace rehearse
