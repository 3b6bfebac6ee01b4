// Parts that Gemma 3n adds to every layer. The copies of rows (AltUp) pass from layer to layer in memory. So
// blocks count all bytes that they move, but as kept bytes only the rows that they compute. Tensor-parallel
// ranks hold all of these weights.
#include "plan/work/per_layer.h"

#include <fmt/core.h>

#include "plan/work/pointwise.h"
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

TensorId linear_rows(BlockBuilder& b, const std::string& name, TensorId rows, std::int64_t from,
                     std::int64_t to) {
  ColumnLinear linear{name, rows};
  linear.input_width = from;
  linear.weight = b.parameter(name + "_weight", Shape::elements(from, to));
  linear.outputs = {{name + "_rows", to}};
  return replicated_linear(b, b.shape(), linear).front();
}

double of_rows(const Shape& shape, std::int64_t width) {
  return Shape::elements(shape.rows, width);
}

// A pass over `rows` and the copies beside them, with weights whose gradients are sums over the tokens.
TensorId pass_copies(BlockBuilder& b, const std::string& name, TensorId rows, double copies,
                     const std::vector<TensorId>& weights) {
  const TensorId kept = b.tied_parameter(name + "_copies", copies);
  const TensorId output = b.activation(name + "_rows", b[rows].elements);
  std::vector<TensorId> reads = {rows, kept};
  reads.insert(reads.end(), weights.begin(), weights.end());
  b.forward({name, Pointwise::eager, reads, {output, kept}});
  b.undo([&b, name, rows, weights, output, reads, copies] {
    const std::vector<TensorId> sums = sums_of(b, weights);
    std::vector<TensorId> needs = {b.gradient_of(output)},
                          makes = {b.new_gradient(rows),
                                   b.scratch_gradient(name + "_copies_gradient", copies)};
    needs.insert(needs.end(), reads.begin(), reads.end());
    makes.insert(makes.end(), sums.begin(), sums.end());
    b.backward_input({name + "_backward", Pointwise::eager, needs, makes});
    add_sums(b, name + "_weight_gradient", sums, weights);
  });
  return output;
}

}  // namespace

void embed_per_layer(BlockBuilder& b, const Model& model, TensorId rows) {
  const Shape& shape = b.shape();
  const std::int64_t all = model.layers * model.per_layer_width;
  b.unmeasured(true);
  const TensorId words = b.batch("per_layer_words", static_cast<double>(shape.tokens));
  const TensorId table = b.parameter("per_layer_table", Shape::elements(model.per_layer_vocab, all));
  const TensorId found = b.activation("per_layer_found", of_rows(shape, all));
  const TensorId weight = b.parameter("per_layer_projection_weight", Shape::elements(model.hidden, all));
  const TensorId mapped = b.activation("per_layer_projected", of_rows(shape, all));
  const std::vector<TensorId> norm = {
      b.parameter("per_layer_norm_weight", static_cast<double>(model.per_layer_width))};
  const TensorId sum = b.activation("per_layer_inputs", of_rows(shape, all));
  const Gemm gemm{shape.rows, all, model.hidden};
  b.forward({"per_layer_look_up", Pointwise::embedding, {words, table}, {found}});
  b.forward({"per_layer_projection", gemm, {rows, {weight, Slot::weight}}, {mapped}});
  b.forward({"per_layer_sum", Pointwise::eager, {found, mapped, norm[0]}, {sum}});
  b.undo([&b, gemm, rows, words, table, weight, mapped, norm] {
    const double elements = b[mapped].elements;
    const TensorId gradient = b.scratch_gradient("per_layer_inputs_gradient", elements),
                   of_mapped = b.scratch_gradient("per_layer_projected_gradient", elements);
    const std::vector<TensorId> sums = sums_of(b, norm);
    b.backward_input(
        {"per_layer_sum_backward", Pointwise::eager, {gradient, mapped, norm[0]}, {of_mapped, sums[0]}});
    b.backward_input({"per_layer_projection_input_gradient",
                      b.input_gradient({gemm.m, gemm.k, gemm.n}),
                      {of_mapped, {weight, Slot::weight}},
                      {b.new_gradient(rows)}});
    b.backward_weight({"per_layer_projection_weight_gradient",
                       b.weight_gradient({gemm.n, gemm.k, gemm.m}),
                       {of_mapped, {rows, Slot::input}},
                       {b.parameter_gradient(weight)}});
    b.backward_weight({"per_layer_table_gradient",
                       Pointwise::embedding_backward,
                       {gradient, words},
                       {b.parameter_gradient(table)}});
    add_sums(b, "per_layer_norm_weight_gradient", sums, norm);
  });
  b.unmeasured(false);
}

TensorId add_per_layer(BlockBuilder& b, const Model& model, TensorId rows) {
  b.unmeasured(true);
  const std::int64_t width = model.per_layer_width;
  const TensorId gate = linear_rows(b, "per_layer_gate", rows, model.hidden, width);
  const TensorId own = b.activation("per_layer_input", of_rows(b.shape(), width));
  const TensorId gated = activate(b, "per_layer_activation", {gate, own}, of_rows(b.shape(), width), width);
  const TensorId made = linear_rows(b, "per_layer_output", gated, width, model.hidden);
  const TensorId normed = normalise(b, "per_layer_output_norm", model.norm, made, model.hidden);
  b.unmeasured(false);
  return add_residual(b, {"per_layer_residual", rows, normed, -1, false}, "per_layer_rows");
}

TensorId add_laurel(BlockBuilder& b, const Model& model, TensorId rows, TensorId sum) {
  b.unmeasured(true);
  const TensorId latent = linear_rows(b, "laurel_left", rows, model.hidden, model.laurel_rank);
  const TensorId made = linear_rows(b, "laurel_right", latent, model.laurel_rank, model.hidden);
  const TensorId normed = normalise(b, "laurel_norm", model.norm, made, model.hidden);
  b.unmeasured(false);
  return add_residual(b, {"laurel_residual", sum, normed, -1, false}, "laurel_rows");
}

TensorId alternate(BlockBuilder& b, const Model& model, TensorId rows) {
  b.unmeasured(true);
  const auto n = static_cast<double>(model.alternating), width = static_cast<double>(model.hidden);
  const double copies = (n - 1) * b[rows].elements;
  const TensorId predicted = pass_copies(
      b, "altup_predict", rows, copies,
      {b.parameter("altup_router_norm_weight", width), b.parameter("altup_router_weight", n * width),
       b.parameter("altup_prediction_weight", n * n * n)});
  const TensorId corrected =
      pass_copies(b, "altup_correct", predicted, copies,
                  {b.parameter("altup_correction_weight", n * n), b.parameter("altup_scale_weight", width)});
  b.unmeasured(false);
  return corrected;
}

TensorId project_copies(BlockBuilder& b, const Model& model, TensorId rows) {
  b.unmeasured(true);
  TensorId output = rows;
  for (std::int64_t copy = 1; copy < model.alternating; ++copy) {
    const std::string name = fmt::format("altup_copy_{}", copy);
    const TensorId projected = linear_rows(b, name, rows, model.hidden, model.hidden);
    output = add_residual(b, {name + "_sum", output, projected, -1, false}, name + "_added");
  }
  b.unmeasured(false);
  return output;
}

}  // namespace rehearse
