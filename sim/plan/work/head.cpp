#include "plan/stages.h"
#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr double kLogitBytes = 4;

// A number a token, made equal on all ranks of the vocabulary.
TensorId over_vocabulary(BlockBuilder& b, const Shape& shape, TensorId partial) {
  if (shape.tp == 1) return partial;
  const std::string name = b[partial].name;
  const TensorId whole = b.activation(name + "_reduced", b[partial].elements, kLogitBytes);
  b.forward({name + "_all_reduce",
             Collective{CollectiveOp::all_reduce, Axis::tp, b[partial].bytes()},
             {partial},
             {whole}});
  return whole;
}

TensorId per_token(BlockBuilder& b, const Shape& shape, const char* name) {
  return b.activation(name, static_cast<double>(shape.tokens), kLogitBytes);
}

TensorId per_logit(BlockBuilder& b, const char* name, double elements) {
  return b.activation(name, elements, kLogitBytes);
}

// Softmax and loss of logits that are split over the vocabulary: the maximum, the sum of exponentials and the
// target's logit of each token are reduced over the ranks. The backward kernel reads the probabilities.
void fused_cross_entropy(BlockBuilder& b, const Shape& shape, TensorId logits) {
  const double elements = b[logits].elements;
  const TensorId labels = b.batch("labels", static_cast<double>(shape.tokens));
  const TensorId maximum = per_token(b, shape, "maximum"), target = per_token(b, shape, "target"),
                 sum = per_token(b, shape, "sum"), loss = per_token(b, shape, "loss");
  const TensorId exponentials = per_logit(b, "exponentials", elements),
                 probabilities = per_logit(b, "probabilities", elements);

  b.forward({"maximum", Pointwise::cross_entropy, {logits}, {maximum}});
  const TensorId maximum_of_all = over_vocabulary(b, shape, maximum);
  b.forward({"exponentials",
             Pointwise::cross_entropy,
             {logits, labels, maximum_of_all},
             {exponentials, target, sum}});
  const TensorId target_of_all = over_vocabulary(b, shape, target);
  const TensorId sum_of_all = over_vocabulary(b, shape, sum);
  b.forward(
      {"loss", Pointwise::cross_entropy, {exponentials, target_of_all, sum_of_all}, {probabilities, loss}});
  b.undo([&b, labels, logits, probabilities] {
    b.backward_input({"loss_backward",
                      Pointwise::cross_entropy_backward,
                      {probabilities, labels},
                      {b.new_gradient(logits)}});
  });
}

// The same as one kernel for each operation on logits of the training precision: 52 bytes a logit
// (Megatron-LM, core/tensor_parallel/cross_entropy.py, which works in place where it can).
void unfused_cross_entropy(BlockBuilder& b, const Shape& shape, TensorId logits) {
  const double elements = b[logits].elements;
  const TensorId labels = b.batch("labels", static_cast<double>(shape.tokens));
  const TensorId maximum = per_token(b, shape, "maximum"), target = per_token(b, shape, "target"),
                 sum = per_token(b, shape, "sum"), loss = per_token(b, shape, "loss");
  const TensorId wide = per_logit(b, "logits_fp32", elements), shifted = per_logit(b, "shifted", elements),
                 exponentials = per_logit(b, "exponentials", elements),
                 probabilities = per_logit(b, "probabilities", elements);
  b.forward({"logits_cast", Pointwise::cross_entropy, {logits}, {wide}});
  b.forward({"maximum", Pointwise::cross_entropy, {wide}, {maximum}});
  const TensorId maximum_of_all = over_vocabulary(b, shape, maximum);
  b.forward({"shift", Pointwise::cross_entropy, {wide, maximum_of_all}, {shifted}});
  b.forward({"exponentials", Pointwise::cross_entropy, {shifted, labels}, {exponentials, target}});
  b.forward({"sum", Pointwise::cross_entropy, {exponentials}, {sum}});
  const TensorId target_of_all = over_vocabulary(b, shape, target);
  const TensorId sum_of_all = over_vocabulary(b, shape, sum);
  b.forward(
      {"loss", Pointwise::cross_entropy, {exponentials, target_of_all, sum_of_all}, {probabilities, loss}});
  b.undo([&b, labels, logits, probabilities, elements] {
    const TensorId gradient = b.scratch_gradient("logits_fp32_gradient", elements, kLogitBytes);
    b.backward_input(
        {"loss_backward", Pointwise::cross_entropy_backward, {probabilities, labels}, {gradient}});
    b.backward_input(
        {"logits_cast_backward", Pointwise::cross_entropy_backward, {gradient}, {b.new_gradient(logits)}});
  });
}

}  // namespace

Block head_block(const Model& model, const Plan& plan) {
  Shape shape = shape_on_one_rank(model, plan);
  shape.tp_comm_overlap = false;  // the output layer has no user buffers
  shape.fp8 = false;              // and multiplies in the precision of the activations
  BlockBuilder b("head", shape);
  const TensorId input = b.input("input", shape.row_elements());
  ColumnLinear head{"logits", normalise(b, "final_norm", model.norm, input, shape.hidden)};
  const double elements = Shape::elements(shape.vocab, shape.hidden);
  const bool table_is_here = model.tied_embeddings && pipeline_rank_of(plan.stages() - 1, plan) == 0;
  head.weight =
      table_is_here ? b.tied_parameter("word_table", elements) : b.parameter("head_weight", elements);
  head.outputs = {{"logits", shape.vocab, plan.fused_cross_entropy ? kLogitBytes : 0}};
  const TensorId logits = column_linear(b, shape, head).front();
  plan.fused_cross_entropy ? fused_cross_entropy(b, shape, logits) : unfused_cross_entropy(b, shape, logits);
  return b.finish();
}

}  // namespace rehearse
