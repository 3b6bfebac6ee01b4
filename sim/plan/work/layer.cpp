#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"

namespace rehearse {

Block layer_block(const Model& model, const Plan& plan, bool sparse) {
  const Shape shape = shape_on_one_rank(model, plan);
  BlockBuilder b(sparse ? "sparse_layer" : "layer", shape.element_bytes);
  const TensorId input = b.input("input", shape.row_elements());

  const TensorId attention_in = normalise(b, "attention_norm", model.norm, input, shape.hidden);
  const Branch attended = attention(b, model, plan, shape, attention_in);
  const TensorId middle =
      add_residual(b, {"attention_residual", input, attended.output, attended.bias, model.dropout}, "middle");

  const TensorId mlp_source = model.parallel_residual ? input : middle;
  const TensorId mlp_in = normalise(b, "mlp_norm", model.norm, mlp_source, shape.hidden);
  const Branch transformed = sparse
                                 ? experts(b, model, plan, shape, mlp_in)
                                 : feed_forward(b, model, shape, {"mlp", shape.ffn, model.mlp_bias}, mlp_in);
  b.hands_on(add_residual(b, {"mlp_residual", middle, transformed.output, transformed.bias, model.dropout},
                          "output"));

  if (plan.recompute == Recompute::full) b.rerun_all();
  return b.finish();
}

}  // namespace rehearse
