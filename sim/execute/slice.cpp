#include "execute/slice.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "execute/random.h"
#include "plan/work/shape.h"

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

// Columns of a parameter whose rows are shared out.
std::int64_t depth_of(const std::string& name, const Model& model) {
  if (name == "convolution_weight") return model.state_space->convolution;
  if (name == "joined_projection_weight") return 2 * model.hidden;
  if (name == "kv_up_weight") return model.latent->kv_rank;
  if (name == "query_up_weight" && model.latent->q_rank > 0) return model.latent->q_rank;
  const bool is_vector =
      name.ends_with("_bias") || name == "mamba_norm_weight" || name == "decay_log" || name == "skip";
  return is_vector ? 1 : model.hidden;
}

// Rows that tensor-parallel ranks share out, of a column-parallel layer, a table or a state space; empty for
// all others.
std::vector<std::int64_t> outputs_of(const Tensor& parameter, const Model& model, const Plan& plan) {
  const auto is_of = [&parameter](const std::string& layer) {
    return parameter.name == layer + "_weight" || parameter.name == layer + "_bias";
  };
  const std::int64_t queries = model.heads * model.head_dim, keys = model.kv_heads * model.head_dim;
  if (is_of("qkv")) return {queries, keys, keys};
  if (is_of("query_projection")) return {queries};
  if (is_of("key_projection") || is_of("value_projection")) return {keys};
  const bool joins_gate = model.gated_mlp && !shape_on_one_rank(model, plan).splits_gate;
  const auto of_width = [joins_gate](std::int64_t width) {
    return std::vector<std::int64_t>(joins_gate ? 2 : 1, width);
  };
  if (model.latent) {
    if (is_of("query_up")) return {queries};
    if (is_of("kv_up")) return {model.heads * (model.latent->nope_head_dim + model.latent->v_head_dim)};
  }
  if (is_of("joined_projection")) return {model.hidden};
  if (is_of("mlp_gate") || is_of("mlp_up")) return of_width(model.ffn_hidden);
  if (is_of("shared_gate") || is_of("shared_up")) return of_width(model.experts->shared_ffn_hidden);
  if (model.state_space) {
    const StateSpace& space = *model.state_space;
    const std::int64_t inner = space.inner(), map = space.groups * space.state;
    if (is_of("mamba_inputs")) return {inner, inner, map, map, space.heads};
    if (is_of("convolution")) return {inner, map, map};
    if (parameter.name == "mamba_norm_weight") return {inner};
    for (const char* name : {"step_bias", "decay_log", "skip"})
      if (parameter.name == name) return {space.heads};
  }
  if (parameter.name == "word_table" || parameter.name == "head_weight")
    return {shape_on_one_rank(model, plan).vocab * plan.tp};
  return {};
}

struct Uniform {
  std::string_view name;
  float mean = 0, spread = 0;
};
// What a state space remembers must show: steps of 0.001 to 0.1, decays of 1 to 16 a step, and a convolution
// of four tokens as PyTorch begins one (mamba-ssm, modules/mamba2.py).
constexpr std::array kOfStateSpaces = {
    Uniform{".step_bias", -4.6F, 2.3F}, Uniform{".decay_log", 1.39F, 1.39F},
    Uniform{".skip", 1, 0.0346410162F}, Uniform{".convolution_weight", 0, 0.5F},
    Uniform{".convolution_bias", 0, 0.5F}};

}  // namespace

Slice slice_of(const Tensor& parameter, const Model& model, const Plan& plan, int tensor_rank) {
  const std::string& name = parameter.name;
  const std::int64_t values = model.heads * (model.latent ? model.latent->v_head_dim : model.head_dim);
  const std::vector<std::int64_t> outputs = outputs_of(parameter, model, plan);
  if (!outputs.empty()) return share_of_rows(outputs, depth_of(name, model), tensor_rank, plan.tp);
  if (name == "projection_weight") return share_of_columns(model.hidden, values, tensor_rank, plan.tp);
  if (name == "mamba_projection_weight")
    return share_of_columns(model.hidden, model.state_space->inner(), tensor_rank, plan.tp);
  if (name == "mlp_down_weight")
    return share_of_columns(model.hidden, model.ffn_hidden, tensor_rank, plan.tp);
  if (name == "shared_down_weight")
    return share_of_columns(model.hidden, model.experts->shared_ffn_hidden, tensor_rank, plan.tp);
  return share_of_columns(1, static_cast<std::int64_t>(parameter.elements), 0, 1);
}

Slice expert_slice_of(const Tensor& parameter, const Model& model, const Plan& plan, const Coordinates& at) {
  const Experts& experts = *model.experts;
  const std::int64_t width = experts.latent > 0 ? experts.latent : model.hidden;
  const std::int64_t local = experts.count / plan.ep, first = local * at[static_cast<std::size_t>(Axis::ep)];
  const int tensor_rank = at[static_cast<std::size_t>(Axis::tp)];
  const bool is_up = parameter.name == "experts_up_weight";
  const std::vector<std::int64_t> parts(is_up && model.gated_mlp ? 2 : 1, experts.ffn_hidden);
  const Slice one = is_up ? share_of_rows(parts, width, tensor_rank, plan.etp)
                          : share_of_columns(width, experts.ffn_hidden, tensor_rank, plan.etp);
  Slice all = one;
  all.rows.clear();
  all.whole_rows = one.whole_rows * experts.count;
  for (std::int64_t expert = first; expert < first + local; ++expert)
    for (const Slice::Rows& rows : one.rows)
      all.rows.push_back({expert * one.whole_rows + rows.first, rows.count});
  return all;
}

// Whole rows of a matrix that is split by columns lie apart in it; a first row may begin in its middle.
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
