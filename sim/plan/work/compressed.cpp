// DeepSeek-V4's attention (transformers, modular_deepseek_v4.py, DeepseekV4Attention). It has compressed
// queries, one key for all heads that is also its value, and a window with compressed keys behind it. The
// output projection has two steps, the first for each group of heads. Omitted: the rotation of attention's
// output back by its position.
#include "plan/work/compressed.h"

#include <algorithm>

#include "plan/work/pointwise.h"
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

TensorId whole_linear(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId rows,
                      std::int64_t width) {
  ColumnLinear linear{name, rows};
  linear.weight = b.parameter(name + "_weight", Shape::elements(shape.hidden, width));
  linear.outputs = {{name + "_rows", width}};
  return replicated_linear(b, shape, linear).front();
}

// Joins the keys of the window and the compressed keys behind them.
TensorId join_keys(BlockBuilder& b, TensorId keys, TensorId compressed) {
  const TensorId joined = b.activation("keys_joined", b[keys].elements + b[compressed].elements);
  b.forward({"join_keys", Pointwise::eager, {keys, compressed}, {joined}});
  b.undo([&b, keys, compressed, joined] {
    b.backward_input({"join_keys_backward",
                      Pointwise::eager,
                      {b.gradient_of(joined)},
                      {b.new_gradient(keys), b.new_gradient(compressed)}});
  });
  return joined;
}

// The first step of the output projection: one GEMM for each group of heads.
TensorId project_groups(BlockBuilder& b, const Shape& shape, TensorId attended, std::int64_t groups,
                        std::int64_t width, std::int64_t rank) {
  const Gemm gemm{shape.tokens, rank, width / groups, groups};
  const TensorId weight = b.parameter("group_projection_weight", Shape::elements(width, rank));
  const TensorId output = b.activation("group_outputs", Shape::elements(shape.tokens, groups * rank));
  b.forward({"group_projection", gemm, {attended, {weight, Slot::weight}}, {output}});
  b.undo([&b, gemm, weight, attended, output] {
    const TensorId gradient = b.gradient_of(output);
    b.backward_input({"group_projection_input_gradient",
                      b.input_gradient({gemm.m, gemm.k, gemm.n, gemm.batch}),
                      {gradient, {weight, Slot::weight}},
                      {b.new_gradient(attended)}});
    b.backward_weight({"group_projection_weight_gradient",
                       b.weight_gradient({gemm.n, gemm.k, gemm.m, gemm.batch}),
                       {gradient, {attended, Slot::input}},
                       {b.parameter_gradient(weight)}});
  });
  return output;
}

// A query sees half of the compressed keys on average, or the chosen number of them.
std::int64_t keys_seen(const Model& model, const Shape& shape) {
  if (model.compression == 0) return model.window;
  const std::int64_t before = shape.seq / model.compression / 2;
  const bool chooses = model.compression == model.compressed->sparse;
  return model.window + (chooses ? std::min(before, model.compressed->top_k) : before);
}

}  // namespace

TensorId compress(BlockBuilder& b, const Shape& shape, const Compressor& what, TensorId rows) {
  const std::int64_t channels = (what.overlaps ? 2 : 1) * what.width;
  const TensorId mapped =
      all_rows(b, shape, whole_linear(b, shape, what.name, rows, 2 * channels), 2 * channels);
  const std::vector<TensorId> bias = {
      b.parameter(what.name + "_place_bias", Shape::elements(what.tokens, channels))};
  const double keys = static_cast<double>(shape.tokens) / static_cast<double>(what.tokens);
  const TensorId pooled =
      b.activation(what.name + "_keys", std::max(1.0, keys) * static_cast<double>(what.width));
  b.forward({what.name + "_pool", Pointwise::eager, {mapped, bias[0]}, {pooled}});
  b.undo([&b, what, mapped, bias, pooled] {
    const std::vector<TensorId> sums = sums_of(b, bias);
    b.backward_input({what.name + "_pool_backward",
                      Pointwise::eager,
                      {b.gradient_of(pooled), mapped, bias[0]},
                      {b.new_gradient(mapped), sums[0]}});
    add_sums(b, what.name + "_place_bias_gradient", sums, bias);
  });
  return normalise(b, what.name + "_norm", Norm::rms, pooled, what.width);
}

Branch compressed_attention(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape,
                            TensorId input) {
  const CompressedAttention& of = *model.compressed;
  const std::int64_t width = shape.heads * shape.head_dim, groups = of.groups / shape.tp;
  b.unmeasured(true);
  const TensorId latent = normalise(b, "query_norm", Norm::rms,
                                    whole_linear(b, shape, "query_down", input, of.q_rank), of.q_rank);
  ColumnLinear up{"query_up", latent};
  up.input_width = of.q_rank;
  up.weight = b.parameter("query_up_weight", Shape::elements(of.q_rank, width));
  up.outputs = {{"query", width}};
  const TensorId query = normalise(b, "query_heads_norm", Norm::layer_plain,
                                   column_linear(b, shape, up).front(), shape.head_dim);
  const TensorId own_key = normalise(
      b, "key_norm", Norm::rms, whole_linear(b, shape, "shared_key", input, shape.head_dim), shape.head_dim);
  const std::vector<TensorId> rotated = rotate(b, query, all_rows(b, shape, own_key, shape.head_dim));

  Heads heads{rotated[0], rotated[1], rotated[1], shape.head_dim, shape.head_dim};
  const bool chooses = model.compression > 0 && model.compression == of.sparse;
  if (model.compression > 0)
    heads.key = heads.value = join_keys(
        b, heads.key, compress(b, shape, {"compressor", model.compression, shape.head_dim, chooses}, input));
  if (chooses) heads.held.push_back(choose_compressed(b, model, shape, input, latent));
  if (model.attention_sinks) heads.sinks = b.parameter("sinks", static_cast<double>(shape.heads));
  Model seen = model;
  seen.window = keys_seen(model, shape);
  const TensorId attended = fused_attention(b, seen, shape, heads, reruns(plan, RecomputeModule::core_attn));
  const TensorId grouped = project_groups(b, shape, attended, groups, width, of.group_rank);
  b.unmeasured(false);
  return {row_linear(b, shape, "projection", grouped, groups * of.group_rank, shape.tp_comm_proj_sms)};
}

}  // namespace rehearse
