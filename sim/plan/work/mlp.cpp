#include "plan/work/blocks.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// GELU, or SiLU of the gate times the up projection.
TensorId activate(BlockBuilder& b, const Shape& shape, TensorId up) {
  const TensorId output = b.activation("activated", Shape::elements(shape.tokens, shape.ffn));
  b.forward({"activation", Pointwise::activation, {up}, {output}});
  b.undo([&b, up, output] {
    b.backward_input({"activation_backward",
                      Pointwise::activation_backward,
                      {b.gradient_of(output), up},
                      {b.new_gradient(up)}});
  });
  return output;
}

}  // namespace

Branch mlp(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  const std::int64_t width = model.gated_mlp ? 2 * shape.ffn : shape.ffn;
  ColumnLinear up{"mlp_up", input};
  up.weight = b.parameter("mlp_up_weight", Shape::elements(width, shape.hidden));
  if (model.mlp_bias) up.bias = b.parameter("mlp_up_bias", static_cast<double>(width));
  up.outputs = {{model.gated_mlp ? "gate_and_up" : "up", width}};

  const TensorId activated = activate(b, shape, column_linear(b, shape, up).front());
  Branch branch{row_linear(b, shape, "mlp_down", activated, shape.ffn)};
  if (model.mlp_bias) branch.bias = b.parameter("mlp_down_bias", static_cast<double>(shape.hidden));
  return branch;
}

}  // namespace rehearse
