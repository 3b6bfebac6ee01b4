#include "plan/stages.h"
#include "plan/work/blocks.h"
#include "plan/work/loss.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// As a list with a tensor for each rank, which are joined then (Aleph Alpha's Scaling,
// core/nn/linear/utils.py, _all_concat); of the gradient a rank keeps its part.
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

}  // namespace

void predict(BlockBuilder& b, const Model& model, const Plan& plan, TensorId rows, TensorId weight) {
  Shape shape = b.shape();
  shape.tp_comm_overlap = false;  // the output layer has no user buffers
  // Megatron core multiplies it in the precision of the activations unless told otherwise (fp8_output_proj).
  shape.quantised = plan.fp8_output_proj;
  ColumnLinear head{"logits", rows, weight};
  if (model.head_bias) head.bias = b.parameter("head_bias", static_cast<double>(shape.vocab));
  head.outputs = {{"logits", shape.vocab}};
  head.of_model = static_cast<double>(model.vocab) / static_cast<double>(shape.tp * shape.vocab);
  TensorId logits = column_linear(b, shape, head).front();
  if (gathers_logits(plan)) logits = gathered(b, shape, logits);
  if (reruns_ends(plan)) b.rerun_from(0);
  add_loss(b, plan, shape, logits);
}

Block head_block(const Model& model, const Plan& plan) {
  const Shape shape = shape_on_one_rank(model, plan);
  BlockBuilder b("head", shape);
  const TensorId input = b.input("input", shape.row_elements());
  const TensorId rows = normalise(b, "final_norm", model.norm, input, shape.hidden);
  const double elements = Shape::elements(shape.vocab, shape.hidden);
  const bool table_is_here = model.tied_embeddings && pipeline_rank_of(plan.stages() - 1, plan) == 0;
  predict(b, model, plan, rows,
          table_is_here ? b.tied_parameter("word_table", elements) : b.parameter("head_weight", elements));
  return b.finish();
}

}  // namespace rehearse
