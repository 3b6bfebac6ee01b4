#include "plan/stages.h"
#include "plan/work/blocks.h"
#include "plan/work/loss.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

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
  head.outputs = {{"logits", shape.vocab}};
  head.of_model = static_cast<double>(model.vocab) / static_cast<double>(shape.tp * shape.vocab);
  add_loss(b, plan, shape, column_linear(b, shape, head).front());
  return b.finish();
}

}  // namespace rehearse
