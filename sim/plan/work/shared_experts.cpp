// Experts that every token visits, beside those that the router chooses.
#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/routed.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// transformers, modeling_qwen2_moe.py: sigmoid(shared_expert_gate(rows)) times the shared expert's output,
// two passes in eager PyTorch.
TensorId gate_shared(BlockBuilder& b, const Shape& shape, TensorId input, TensorId output) {
  ColumnLinear gate{"shared_gate_score", input};
  gate.weight = b.parameter("shared_gate_score_weight", static_cast<double>(shape.hidden));
  gate.outputs = {{"shared_score", 1}};
  Shape whole = shape;
  whole.quantized = false;
  const TensorId score = replicated_linear(b, whole, gate).front();
  const TensorId gated = b.activation("shared_gated", b[output].elements);
  b.forward({"shared_gate_product", Pointwise::eager, {output, score}, {gated}});
  b.undo([&b, output, score, gated] {
    const TensorId gradient = b.gradient_of(gated);
    b.backward_input({"shared_gate_output", Pointwise::eager, {gradient, score}, {b.new_gradient(output)}});
    b.backward_input({"shared_gate_gradient", Pointwise::eager, {gradient, output}, {b.new_gradient(score)}});
  });
  return gated;
}

// Every token visits the shared experts: an MLP split like any other.
FeedForward shared_of(const Model& model, const Plan& plan) {
  return {"shared", model.experts->shared_ffn_hidden / plan.tp, false};
}

TensorId add_shared(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input,
                    TensorId routed) {
  const std::size_t first = b.forward_kernels();
  b.enter(LayerPart::router);
  const TensorId made = feed_forward(b, model, shape, shared_of(model, plan), input).output;
  const TensorId output = model.experts->shared_gate ? gate_shared(b, shape, input, made) : made;
  b.enter(LayerPart::experts);
  if (reruns(plan, RecomputeModule::shared_experts)) b.rerun_from(first);
  return add_residual(b, {"shared_sum", routed, output, -1, false}, "mixed_output");
}

}  // namespace

Branch experts(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input) {
  const TensorId routed = routed_experts(b, model, plan, shape, {input, input});
  if (model.experts->shared_ffn_hidden == 0) return {routed};
  return {add_shared(b, model, plan, shape, input, routed)};
}

Branch experts_with_norms(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape,
                          TensorId normed, TensorId input) {
  b.enter(LayerPart::router);
  const TensorId made = feed_forward(b, model, shape, shared_of(model, plan), normed).output;
  const TensorId shared = normalise(b, "shared_output_norm", model.norm, made, shape.hidden);
  const TensorId scored = normalise(b, "router_norm", model.norm, input, shape.hidden);
  const TensorId rows = normalise(b, "experts_norm", model.norm, input, shape.hidden);
  const TensorId routed = normalise(b, "routed_output_norm", model.norm,
                                    routed_experts(b, model, plan, shape, {rows, scored}), shape.hidden);
  return {add_residual(b, {"shared_sum", routed, shared, -1, false}, "mixed_output")};
}

}  // namespace rehearse
