#include "plan/stages.h"
#include "plan/work/blocks.h"
#include "plan/work/compressed.h"
#include "plan/work/loss.h"
#include "plan/work/per_layer.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// Gathers logits as a list with a tensor for each rank, and joins them (Aleph Alpha's Scaling,
// core/nn/linear/utils.py, _all_concat). A rank keeps its part of the gradient.
TensorId gathered(BlockBuilder& b, const Shape& shape, TensorId logits) {
  if (shape.tp == 1) return logits;
  const double elements = static_cast<double>(shape.tp) * b[logits].elements;
  const TensorId apart = b.activation("logits_apart", elements),
                 joined = b.activation("logits_joined", elements);
  b.forward({"logits_all_gather",
             Collective{CollectiveOp::all_gather, CommGroup::tensor, b[apart].bytes()},
             {logits},
             {apart}});
  b.forward({"logits_join", Pointwise::eager, {apart}, {joined}});
  b.undo([&b, logits, joined] {
    b.backward_input({"logits_part", Pointwise::eager, {b.gradient_of(joined)}, {b.new_gradient(logits)}});
  });
  return joined;
}

// One operation of eager PyTorch. `keeps`: its backward kernel reads its output.
TensorId elementwise(BlockBuilder& b, const std::string& name, TensorId input, bool keeps) {
  const TensorId output = b.activation(name, b[input].elements);
  b.forward({name, Pointwise::eager, {input}, {output}});
  b.undo([&b, name, input, output, keeps] {
    std::vector<TensorId> needs = {b.gradient_of(output)};
    if (keeps) needs.push_back(output);
    b.backward_input({name + "_backward", Pointwise::eager, needs, {b.new_gradient(input)}});
  });
  return output;
}

// transformers, modeling_gemma2.py: logits / cap, tanh, times cap.
TensorId cap(BlockBuilder& b, TensorId logits) {
  const TensorId scaled = elementwise(b, "logits_scaled", logits, false);
  return elementwise(b, "logits_capped", elementwise(b, "logits_tanh", scaled, true), false);
}

// transformers, modeling_bert.py, BertPredictionHeadTransform. Every rank holds it whole.
TensorId transform(BlockBuilder& b, const Model& model, const Shape& shape, TensorId rows) {
  ColumnLinear linear{"head_transform", rows};
  linear.weight = b.parameter("head_transform_weight", Shape::elements(shape.hidden, shape.hidden));
  linear.bias = b.parameter("head_transform_bias", static_cast<double>(shape.hidden));
  linear.outputs = {{"head_transformed", shape.hidden}};
  const TensorId mapped = replicated_linear(b, shape, linear).front();
  const TensorId activated = activate(b, "head_activation", {mapped}, b[mapped].elements, shape.hidden);
  return normalise(b, "head_norm", model.norm, activated, shape.hidden);
}

TensorId before_logits(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  if (model.alternating > 1) input = project_copies(b, model, input);
  if (model.streams > 1) input = join_streams(b, model, input);
  if (model.depth_block > 0) input = sum_depths(b, model, "final_depth", input);
  const TensorId rows = model.norm_place == NormPlace::after_sum
                            ? input
                            : normalise(b, "final_norm", model.norm, input, shape.hidden);
  return model.head_transform ? transform(b, model, shape, rows) : rows;
}

}  // namespace

void predict(BlockBuilder& b, const Model& model, const Plan& plan, TensorId rows, TensorId weight) {
  Shape shape = b.shape();
  shape.tp_comm_overlap = false;  // the output layer has no user buffers
  // Megatron core multiplies in the precision of the activations here, unless fp8_output_proj is set.
  shape.quantized = plan.fp8_output_proj;
  ColumnLinear head{"logits", rows, weight};
  if (model.head_bias) head.bias = b.parameter("head_bias", static_cast<double>(shape.vocab));
  head.outputs = {{"logits", shape.vocab}};
  head.of_model = static_cast<double>(model.vocab) / static_cast<double>(shape.tp * shape.vocab);
  TensorId logits = column_linear(b, shape, head).front();
  b.mark(logits, TensorUse::logits);
  if (model.caps_logits) logits = cap(b, logits);
  if (gathers_logits(plan)) logits = gathered(b, shape, logits);
  if (reruns_ends(plan)) b.rerun_from(0);
  add_loss(b, plan, shape, logits);
}

Block head_block(const Model& model, const Plan& plan) {
  const Shape shape = shape_on_one_rank(model, plan);
  BlockBuilder b("head", shape, BlockRole::head);
  const TensorId input = b.input("input", static_cast<double>(model.streams) * shape.row_elements());
  const TensorId rows = before_logits(b, model, shape, input);
  const double elements = Shape::elements(shape.vocab, shape.hidden);
  const bool table_is_here = model.tied_embeddings && pipeline_rank_of(plan.stages() - 1, plan) == 0;
  const TensorId weight =
      table_is_here ? b.tied_parameter("word_table", elements) : b.parameter("head_weight", elements);
  b.mark(weight, table_is_here ? TensorUse::word_table : TensorUse::head_weight);
  predict(b, model, plan, rows, weight);
  return b.finish();
}

}  // namespace rehearse
