#include "plan/work/blocks.h"
#include "plan/work/compressed.h"
#include "plan/work/per_layer.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"
#include "plan/work/tower.h"

namespace rehearse {

namespace {

// Each rank looks up the tokens of its share of the vocabulary and leaves zeros for the others.
TensorId look_up(BlockBuilder& b, const Shape& shape, TensorId table, const std::string& output_name) {
  const TensorId tokens = b.batch("tokens", static_cast<double>(shape.tokens));
  b.share_out(table, {{shape.vocab}});
  b.mark(table, TensorUse::word_table);
  const TensorId output = b.activation(output_name, shape.token_elements());
  b.forward({"look_up", Pointwise::embedding, {tokens, table}, {output}});
  b.undo([&b, tokens, table, output] {
    b.backward_weight({"word_table_gradient",
                       Pointwise::embedding_backward,
                       {b.gradient_of(output), tokens},
                       {b.parameter_gradient(table)}});
  });
  return output;
}

}  // namespace

TensorId embed(BlockBuilder& b, const Model& model, TensorId table) {
  const Shape& shape = b.shape();
  TensorId rows = reduce_partial(b, shape, "words", look_up(b, shape, table, "words_found"));
  const std::int64_t position_rows = (model.encoder_layers > 0 ? 2 : 1) * model.position_rows();
  if (model.positions == Positions::learned)
    rows = add_table(
        b, {"position_table", "positions", "positioned", Shape::elements(position_rows, shape.hidden)}, rows);
  if (model.token_types > 0)
    rows = add_table(b, {"type_table", "types", "typed", Shape::elements(model.token_types, shape.hidden)},
                     rows);
  // Tables of attention-score biases; each rank has those of its heads. Their addition inside attention is
  // not costed.
  if (model.relative_positions > 0)
    rows = add_table(b,
                     {"relative_table", "relative_positions", "relative",
                      Shape::elements(model.relative_positions, shape.heads)},
                     rows);
  if (model.embedding_norm) rows = normalise(b, "word_norm", model.norm, rows, shape.hidden);
  // A norm of the decoder's token embeddings, whose table is the encoder's. The table's sum over them is
  // omitted.
  if (model.embedding_norm && model.encoder_layers > 0)
    rows = normalise(b, "decoder_word_norm", model.norm, rows, shape.hidden);
  return model.dropout ? drop_out(b, "embedding_dropout", rows, "dropped") : rows;
}

Block embedding_block(const Model& model, const Plan& plan) {
  const Tower* const tower = tower_of_step(model, plan);
  Shape shape = shape_on_one_rank(model, plan);
  if (tower != nullptr) {  // each rank has all token embeddings until images are placed among them
    shape.sequence_parallel = shape.tp_comm_overlap = false;
    shape.rows = shape.tokens;
  }
  BlockBuilder b("embedding", shape, BlockRole::embedding);
  const TensorId images =
      tower != nullptr ? b.input("images", image_elements(model, plan, *tower)) : TensorId{-1};
  if (plan.freeze_tower && plan.freeze_projector) b.no_input_gradient();
  TensorId rows = embed(b, model, b.parameter("word_table", Shape::elements(shape.vocab, shape.hidden)));
  if (tower != nullptr) rows = place_images(b, plan, rows, images);
  if (model.per_layer_width > 0) embed_per_layer(b, model, rows);
  if (model.alternating > 1) rows = project_copies(b, model, rows);
  if (model.streams > 1) rows = spread_streams(b, model, rows);
  b.hands_on(rows);
  if (reruns_ends(plan)) b.rerun_from(0);
  return b.finish();
}

}  // namespace rehearse
