#include "execute/slice.h"

#include "execute/random.h"
#include "kernels/philox.h"

namespace rehearse {

namespace {

// Each of `parts` lies in the whole after the ones before it; a rank holds its share of every part.
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

}  // namespace

Slice slice_of(const Tensor& parameter, const Model& model, const Plan& plan, int tensor_rank) {
  const std::string& name = parameter.name;
  const std::int64_t queries = model.heads * model.head_dim, keys = model.kv_heads * model.head_dim;
  const bool is_matrix = !name.ends_with("_bias");
  const std::int64_t inputs = is_matrix ? model.hidden : 1;
  if (name == "qkv_weight" || name == "qkv_bias")
    return share_of_rows({queries, keys, keys}, inputs, tensor_rank, plan.tp);
  if (name == "mlp_up_weight" || name == "mlp_up_bias") {
    const std::vector<std::int64_t> parts(model.gated_mlp ? 2 : 1, model.ffn_hidden);
    return share_of_rows(parts, inputs, tensor_rank, plan.tp);
  }
  if (name == "shared_up_weight") {
    const std::vector<std::int64_t> parts(model.gated_mlp ? 2 : 1, model.experts->shared_ffn_hidden);
    return share_of_rows(parts, inputs, tensor_rank, plan.tp);
  }
  if (name == "word_table" || name == "head_weight")
    return share_of_rows({model.vocab}, inputs, tensor_rank, plan.tp);
  if (name == "projection_weight") return share_of_columns(model.hidden, queries, tensor_rank, plan.tp);
  if (name == "mlp_down_weight")
    return share_of_columns(model.hidden, model.ffn_hidden, tensor_rank, plan.tp);
  if (name == "shared_down_weight")
    return share_of_columns(model.hidden, model.experts->shared_ffn_hidden, tensor_rank, plan.tp);
  return share_of_columns(1, static_cast<std::int64_t>(parameter.elements), 0, 1);
}

Slice expert_slice_of(const Tensor& parameter, const Model& model, const Plan& plan, const Coordinates& at) {
  const Experts& experts = *model.experts;
  const std::int64_t local = experts.count / plan.ep, first = local * at[static_cast<std::size_t>(Axis::ep)];
  const int tensor_rank = at[static_cast<std::size_t>(Axis::tp)];
  const bool is_up = parameter.name == "experts_up_weight";
  const std::vector<std::int64_t> parts(is_up && model.gated_mlp ? 2 : 1, experts.ffn_hidden);
  const Slice one = is_up ? share_of_rows(parts, model.hidden, tensor_rank, plan.etp)
                          : share_of_columns(model.hidden, experts.ffn_hidden, tensor_rank, plan.etp);
  Slice all = one;
  all.rows.clear();
  all.whole_rows = one.whole_rows * experts.count;
  for (std::int64_t expert = first; expert < first + local; ++expert)
    for (const Slice::Rows& rows : one.rows)
      all.rows.push_back({expert * one.whole_rows + rows.first, rows.count});
  return all;
}

float initial_value(std::uint64_t seed, const std::string& parameter, std::int64_t whole_element) {
  constexpr float kSpread = 0.0346410162F;  // sqrt(3) 0.02
  const bool is_norm = parameter.find("norm") != std::string::npos && parameter.ends_with("_weight");
  const float number =
      kernels::philox_uniform(seed_of(seed, parameter), static_cast<std::uint64_t>(whole_element));
  return (is_norm ? 1.0F : 0.0F) + kSpread * (2 * number - 1);
}

}  // namespace rehearse
