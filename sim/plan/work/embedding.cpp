#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// Each rank looks up the tokens of its share of the vocabulary and leaves zeros for the others.
TensorId look_up(BlockBuilder& b, const Shape& shape, TensorId table, const std::string& output_name) {
  const TensorId tokens = b.batch("tokens", static_cast<double>(shape.tokens));
  b.share_out(table, {{shape.vocab}});
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

TensorId add_positions(BlockBuilder& b, const Model& model, const Shape& shape, TensorId words) {
  const TensorId table = b.parameter("position_table", Shape::elements(model.position_rows(), shape.hidden));
  const TensorId output = b.activation("positioned", shape.row_elements());
  b.forward({"positions", Pointwise::positions, {words, table}, {output}});
  b.undo([&b, words, table, output] {
    b.pass_gradient(output, words);
    b.backward_weight({"position_table_gradient",
                       Pointwise::positions_backward,
                       {b.gradient_of(output)},
                       {b.parameter_gradient(table)}});
  });
  return output;
}

// The kind of each token, read with its word.
TensorId add_types(BlockBuilder& b, const Model& model, const Shape& shape, TensorId words) {
  const TensorId table = b.parameter("type_table", Shape::elements(model.token_types, shape.hidden));
  const TensorId output = b.activation("typed", shape.row_elements());
  b.forward({"types", Pointwise::positions, {words, table}, {output}});
  b.undo([&b, words, table, output] {
    b.pass_gradient(output, words);
    b.backward_weight({"type_table_gradient",
                       Pointwise::positions_backward,
                       {b.gradient_of(output)},
                       {b.parameter_gradient(table)}});
  });
  return output;
}

}  // namespace

TensorId embed(BlockBuilder& b, const Model& model, TensorId table) {
  const Shape& shape = b.shape();
  TensorId rows = reduce_partial(b, shape, "words", look_up(b, shape, table, "words_found"));
  if (model.positions == Positions::learned) rows = add_positions(b, model, shape, rows);
  if (model.token_types > 0) rows = add_types(b, model, shape, rows);
  if (model.embedding_norm) rows = normalise(b, "word_norm", model.norm, rows, shape.hidden);
  return model.dropout ? drop_out(b, "embedding_dropout", rows, "dropped") : rows;
}

Block embedding_block(const Model& model, const Plan& plan) {
  const Shape shape = shape_on_one_rank(model, plan);
  BlockBuilder b("embedding", shape);
  b.hands_on(embed(b, model, b.parameter("word_table", Shape::elements(shape.vocab, shape.hidden))));
  if (reruns_ends(plan)) b.rerun_from(0);
  return b.finish();
}

}  // namespace rehearse
