#include "plan/work/tower.h"

#include <fmt/core.h>

#include "plan/frameworks/traits.h"
#include "plan/work/frozen.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// Data loaders deliver fp32.
constexpr double kPixelBytes = 4;

Shape shape_of(const Tower& tower, const Plan& plan) {
  return shape_on_one_rank(tower.layers, tower_plan(plan, tower));
}

// A convolution whose stride is its size (Dosovitskiy et al. 2021, section 3.1). It is a GEMM over patches,
// and no kernel needs the gradient of the patches. Every tensor-parallel rank computes all of it.
TensorId embed_patches(BlockBuilder& b, const Tower& tower, const Shape& shape) {
  const double numbers = Shape::elements(shape.tokens, tower.patch_inputs);
  const TensorId loaded = b.batch("pixels", numbers, kPixelBytes), pixels = b.activation("patches", numbers);
  const TensorId weight = b.parameter("patch_weight", Shape::elements(shape.hidden, tower.patch_inputs));
  const TensorId bias =
      tower.patch_bias ? b.parameter("patch_bias", static_cast<double>(shape.hidden)) : TensorId{-1};
  const TensorId rows = b.activation("patch_rows", shape.token_elements());
  b.forward({"pixels_cast", Pointwise::eager, {loaded}, {pixels}});
  Gemm gemm{shape.tokens, shape.hidden, tower.patch_inputs};
  gemm.of_model = 1.0 / static_cast<double>(shape.tp);
  KernelTensors reads = {pixels, {weight, Slot::weight}};
  if (bias >= 0) reads.push_back(bias, Slot::bias);
  b.forward({"patch_embedding", gemm, reads, {rows}});
  b.undo([&b, gemm, pixels, weight, bias, rows] {
    const TensorId gradient = b.gradient_of(rows);
    if (bias >= 0)
      b.backward_weight(
          {"patch_bias_gradient", Pointwise::bias_gradient, {gradient}, {b.parameter_gradient(bias)}});
    Gemm of_weight{gemm.n, gemm.k, gemm.m};
    of_weight.of_model = gemm.of_model;
    b.backward_weight({"patch_weight_gradient",
                       b.weight_gradient(of_weight),
                       {gradient, {pixels, Slot::input}},
                       {b.parameter_gradient(weight)}});
  });
  return rows;
}

// Adds the learned row of each position in an image.
TensorId add_positions(BlockBuilder& b, const Tower& tower, const Shape& shape, TensorId rows) {
  const std::int64_t learned = tower.layers.max_positions + (tower.class_row ? 1 : 0);
  if (learned == 0) return rows;
  return add_table(b, {"position_table", "positions", "positioned", Shape::elements(learned, shape.hidden)},
                   rows);
}

// The map from rows to tokens of the language model.
struct Projection {
  const Tower& tower;
  Shape shape;              // shape of the tokens
  std::int64_t tokens = 0;  // tokens of all images

  // A layer with `to` outputs on each rank. Its input is `from` wide, and all ranks have it.
  ColumnLinear linear(BlockBuilder& b, const std::string& name, TensorId input, std::int64_t from,
                      std::int64_t to) const {
    ColumnLinear linear{name, input};
    linear.input_width = from;
    linear.weight = b.parameter(name + "_weight", Shape::elements(from, to));
    if (tower.projector.bias) linear.bias = b.parameter(name + "_bias", static_cast<double>(to));
    linear.outputs = {{name + "_output", to}};
    return linear;
  }

  TensorId average(BlockBuilder& b, TensorId rows) const {
    const TensorId means =
        b.activation("means", Shape::elements(tokens, tower.layers.hidden), b.shape().element_bytes);
    b.forward({"average", Pointwise::eager, {rows}, {means}});
    b.undo([&b, rows, means] {
      b.backward_input(
          {"average_backward", Pointwise::eager, {b.gradient_of(means)}, {b.new_gradient(rows)}});
    });
    return means;
  }

  // A column-parallel and then a row-parallel layer, as in an MLP.
  TensorId map_twice(BlockBuilder& b, TensorId input, std::int64_t from, std::int64_t between) const {
    const std::int64_t share = (between + shape.tp - 1) / shape.tp;
    const TensorId up = column_linear(b, shape, linear(b, "projector_up", input, from, share)).front();
    const TensorId activated =
        activate(b, "projector_activation", {up}, Shape::elements(tokens, share), share);
    const TensorId mapped = row_linear(b, shape, "projector_down", activated, share);
    if (!tower.projector.bias) return mapped;
    const TensorId bias = b.parameter("projector_down_bias", static_cast<double>(shape.hidden));
    const TensorId output = b.activation("projected_rows", b[mapped].elements);
    b.forward({"projector_bias", Pointwise::eager, {mapped, bias}, {output}});
    b.undo([&b, mapped, bias, output] {
      b.pass_gradient(output, mapped);
      b.backward_weight({"projector_down_bias_gradient",
                         Pointwise::bias_gradient,
                         {b.gradient_of(output)},
                         {b.parameter_gradient(bias)}});
    });
    return output;
  }

  TensorId map(BlockBuilder& b, TensorId rows, bool norms_merged) const {
    const Projector& projector = tower.projector;
    std::int64_t width = tower.layers.hidden;
    TensorId input = projector.averages ? average(b, rows) : rows;
    if (!projector.averages) width *= projector.merged;
    if (projector.has_norm)
      input =
          normalise(b, "projector_norm", projector.norm, input, norms_merged ? width : tower.layers.hidden);
    for (std::size_t i = 0; i + 2 < projector.widths.size(); ++i) {
      const std::int64_t to = projector.widths[i];
      input = replicated_linear(b, shape, linear(b, "merge", input, width, to)).front();
      width = to;
    }
    if (projector.widths.size() == 1)
      return replicated_linear(b, shape, linear(b, "projector", input, width, shape.hidden)).front();
    return map_twice(b, input, width, projector.widths[projector.widths.size() - 2]);
  }
};

}  // namespace

const Tower* tower_of_step(const Model& model, const Plan& plan) {
  return plan.images > 0 ? modelled_tower(model) : nullptr;
}

std::int64_t image_tokens(const Plan& plan, const Tower& tower) {
  return plan.image_tokens > 0 ? plan.image_tokens : tower.image_tokens;
}

Plan tower_plan(const Plan& plan, const Tower& tower) {
  Plan own = plan;
  own.seq = image_tokens(plan, tower) * tower.projector.merged;
  own.micro_batch = plan.micro_batch * plan.images;
  own.sequence_parallel = own.tp_comm_overlap = false;
  own.cp = 1;
  own.bf16_first_layers = own.bf16_last_layers = 0;
  if (!traits(plan).recomputes_towers) own.recompute = Recompute::none;
  return own;
}

Block patch_block(const Tower& tower, const Plan& plan) {
  const Shape shape = shape_of(tower, plan);
  BlockBuilder b("tower_patches", shape, BlockRole::tower);
  TensorId rows = add_positions(b, tower, shape, embed_patches(b, tower, shape));
  if (tower.norm_before) rows = normalise(b, "norm_before", tower.layers.norm, rows, shape.hidden);
  b.hands_on(rows);
  Block block = b.finish();
  return plan.freeze_tower ? frozen(std::move(block)) : block;
}

Block tower_layer_block(const Tower& tower, const Plan& plan, LayerSort sort) {
  Block block = layer_block(tower.layers, tower_plan(plan, tower), sort);
  block.name = "tower_" + block.name;
  block.role = BlockRole::tower;
  return plan.freeze_tower ? frozen(std::move(block)) : block;
}

Block projector_block(const Tower& tower, const Plan& plan) {
  const Shape rows_shape = shape_of(tower, plan);
  Projection projection{tower, rows_shape, rows_shape.tokens / tower.projector.merged};
  projection.shape.hidden = tower.projector.widths.back();
  projection.shape.seq = image_tokens(plan, tower);
  projection.shape.tokens = projection.shape.rows = projection.tokens;
  BlockBuilder b("tower_projector", projection.shape, BlockRole::tower);
  const TensorId input = b.input("input", rows_shape.token_elements());
  if (plan.freeze_tower) b.no_input_gradient();
  b.freezes(plan.freeze_tower);  // the norm is the tower's
  const TensorId rows =
      tower.norm_after ? normalise(b, "norm_after", tower.layers.norm, input, tower.layers.hidden) : input;
  b.freezes(plan.freeze_projector);
  TensorId tokens = projection.map(b, rows, tower.projector.norms_merged);
  for (std::int64_t i = 0; i < tower.projector.earlier; ++i) {
    b.begin_names(fmt::format("earlier_{}_", i));
    const TensorId own = projection.map(b, rows, true);
    tokens = add_residual(b, {"sum", tokens, own, -1, false}, "tokens");
  }
  b.begin_names("");
  b.hands_on(tokens);
  return b.finish();
}

double image_elements(const Model& model, const Plan& plan, const Tower& tower) {
  return Shape::elements(plan.micro_batch * plan.images * image_tokens(plan, tower), model.hidden);
}

// transformers calls masked_scatter: it copies the token embeddings and writes images into the copy. Its
// gradients are a masked_fill and a masked_select, which read all rows (PyTorch,
// tools/autograd/derivatives.yaml). Megatron-LM then keeps each rank's own rows, and gathers their gradient
// (core/models/multimodal/llava_model.py).
TensorId place_images(BlockBuilder& b, const Plan& plan, TensorId words, TensorId images) {
  const TensorId placed = b.activation("words_and_images", b[words].elements);
  b.forward({"place_images", Pointwise::eager, {words, images}, {placed}});
  const bool scatters = plan.sequence_parallel && plan.tp > 1;
  const double bytes = b[placed].bytes();
  const TensorId own =
      scatters ? b.activation("own_rows", b[placed].elements / static_cast<double>(plan.tp)) : placed;
  if (scatters) b.forward({"own_rows", Pointwise::eager, {placed}, {own}});
  b.undo([&b, words, images, placed, own, scatters, bytes] {
    TensorId gradient = b.gradient_of(own);
    if (scatters) {
      const TensorId whole = b.scratch_gradient("placed_gradient", b[placed].elements);
      b.backward_input({"placed_gradient_all_gather",
                        Collective{CollectiveOp::all_gather, CommGroup::tensor, bytes},
                        {gradient},
                        {whole}});
      gradient = whole;
    }
    b.backward_input({"words_gradient", Pointwise::eager, {gradient}, {b.new_gradient(words)}});
    b.backward_input({"images_gradient", Pointwise::eager, {gradient}, {b.new_gradient(images)}});
  });
  return own;
}

}  // namespace rehearse
