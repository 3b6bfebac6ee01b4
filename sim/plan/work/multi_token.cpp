// An MTP layer (DeepSeek-V3, section 2.2) as run by Megatron core (transformer/multi_token_prediction.py).
// Its inputs are the last layer's output (or that of the MTP layer before) for a token, and the embedding of
// a later token. From these it predicts the token after that, through a layer of its own.
#include "plan/stages.h"
#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// An MTP layer multiplies in 16 bits where other layers use fp4 ("ignoring FP4 in MTP layers").
Shape shape_of_module(const Model& model, const Plan& plan) {
  const Shape shape = shape_on_one_rank(model, plan);
  return shape.fp4 ? in_bf16(shape) : shape;
}

// The table and the head are the model's, which other blocks of this rank hold. If another rank has the
// embedding and the model does not tie the two, the first MTP layer holds a copy of the table.
struct Shared {
  TensorId table = -1, head = -1;
};

Shared shared_weights(BlockBuilder& b, const Model& model, const Plan& plan, bool first) {
  const double elements = Shape::elements(b.shape().vocab, b.shape().hidden);
  const bool table_is_here =
      !first || model.tied_embeddings || pipeline_rank_of(plan.stages() - 1, plan) == 0;
  const TensorId table =
      table_is_here ? b.tied_parameter("word_table", elements) : b.parameter("word_table", elements);
  const TensorId head = b.tied_parameter("head_weight", elements);
  b.mark(head, TensorUse::head_weight);
  return {table, head};
}

TensorId join(BlockBuilder& b, TensorId left, TensorId right) {
  const TensorId both = b.activation("joined", b[left].elements + b[right].elements);
  b.forward({"join", Pointwise::join_columns, {left, right}, {both}});
  b.undo([&b, left, right, both] {
    b.backward_input({"join_backward",
                      Pointwise::part_columns,
                      {b.gradient_of(both)},
                      {b.new_gradient(left), b.new_gradient(right)}});
  });
  return both;
}

// Each rank computed the columns of its share of the weight. They are gathered and put side by side. With
// sequence parallelism, only a rank's own rows stay. The rows of their gradient are gathered.
TensorId whole_rows(BlockBuilder& b, TensorId columns) {
  const Shape shape = b.shape();
  if (shape.tp == 1) return columns;
  const TensorId apart = b.activation("projected_apart", shape.token_elements());
  const TensorId rows = b.activation("projected_rows", shape.row_elements());
  const Collective gather{CollectiveOp::all_gather, CommGroup::tensor, shape.token_bytes(shape.hidden)};
  b.forward({"projected_all_gather", gather, {columns}, {apart}});
  b.forward({"projected_join", Pointwise::join_shards, {apart}, {rows}});
  b.undo([&b, shape, columns, rows, gather] {
    TensorId gradient = b.gradient_of(rows);
    if (shape.sequence_parallel) {
      const TensorId all = b.scratch_gradient("projected_gradient_gathered", shape.token_elements());
      b.backward_input({"projected_gradient_all_gather", gather, {gradient}, {all}});
      gradient = all;
    }
    b.backward_input({"projected_part", Pointwise::own_shard, {gradient}, {b.new_gradient(columns)}});
  });
  return rows;
}

// Equation 21: projects both inputs, normalized and joined, to one width.
TensorId project(BlockBuilder& b, const Model& model, TensorId embedded, TensorId hidden) {
  const Shape& shape = b.shape();
  const TensorId normed = normalise(b, "embedding_norm", model.norm, embedded, shape.hidden);
  const TensorId joined = join(b, normed, normalise(b, "hidden_norm", model.norm, hidden, shape.hidden));
  ColumnLinear linear{"joined_projection", joined};
  linear.input_width = 2 * shape.hidden;
  const std::int64_t width = shape.hidden / shape.tp;
  linear.weight = b.parameter("joined_projection_weight", Shape::elements(linear.input_width, width));
  linear.outputs = {{"projected", width}};
  return whole_rows(b, column_linear(b, shape, linear).front());
}

// The MTP layer before holds all parameters, because this one repeats it.
void share_all(Block& block) {
  for (Tensor& tensor : block.tensors) {
    if (tensor.role != TensorRole::parameter) continue;
    tensor.role = TensorRole::tied;
    tensor.of_experts = false;
  }
}

std::vector<LayerSort> sorts_of_module(const Model& model, const Plan& plan) {
  if (model.mtp_pattern.empty()) {
    LayerSort sort = sort_of(model, plan, model.layers - 1);
    sort.scores_keys = model.indexer.has_value();
    return {sort};
  }
  std::vector<LayerSort> sorts;
  for (const LayerType type : model.types_of_module())
    sorts.push_back({type, type == LayerType::experts, model.window == 0});
  return sorts;
}

}  // namespace

Block mtp_block(const Model& model, const Plan& plan, bool first) {
  const Shape shape = shape_of_module(model, plan);
  BlockBuilder b(first ? "mtp" : "further_mtp", shape, BlockRole::module);
  const TensorId hidden = b.input("input", shape.row_elements());
  const Shared shared = shared_weights(b, model, plan, first);
  const TensorId projected = project(b, model, embed(b, model, shared.table), hidden);
  TensorId rows = projected;
  for (const LayerSort sort : sorts_of_module(model, plan)) rows = layer(b, model, plan, sort, rows);
  b.enter(LayerPart::none);
  const TensorId normed = normalise(b, "mtp_norm", model.norm, rows, shape.hidden);
  // _checkpointed_forward: only uniform recompute reaches it.
  if (plan.recompute == Recompute::full && plan.recompute_method == RecomputeMethod::uniform) b.rerun_from(0);
  predict(b, model, plan, normed, shared.head);
  b.hands_on(hidden);
  Block block = b.finish();
  if (model.mtp_repeated && !first) share_all(block);
  return block;
}

}  // namespace rehearse
