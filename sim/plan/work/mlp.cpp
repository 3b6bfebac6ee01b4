#include "plan/work/blocks.h"
#include "plan/work/eager.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

TensorId activate(BlockBuilder& b, const std::string& name, std::vector<TensorId> reads, double elements,
                  bool varying) {
  const Pointwise there = varying ? Pointwise::varying_activation : Pointwise::activation;
  const Pointwise back = varying ? Pointwise::varying_activation_backward : Pointwise::activation_backward;
  const TensorId output = b.activation(name == "activation" ? "activated" : name + "_output", elements);
  b.forward({name, there, reads, {output}});
  b.undo([&b, name, back, reads, output] {
    std::vector<TensorId> needs = {b.gradient_of(output)}, makes;
    for (const TensorId read : reads) {
      needs.push_back(read);
      makes.push_back(b.gradient_like(read));
    }
    b.backward_input({name + "_backward", back, needs, makes});
  });
  return output;
}

namespace {

// PyTorch's GELU is one kernel as it is.
TensorId activate_as_planned(BlockBuilder& b, const Model& model, const Shape& shape, const std::string& name,
                             const std::vector<TensorId>& projected, double elements) {
  if (shape.fused_activation || !(model.gated_mlp || model.squared_relu))
    return activate(b, name, projected, elements);
  return model.gated_mlp ? gate_eagerly(b, name, projected[0], projected[1], elements)
                         : square_eagerly(b, name, projected[0], elements);
}

ColumnLinear projection_to(BlockBuilder& b, const Shape& shape, const FeedForward& mlp,
                           const std::string& what, const std::string& output, TensorId input) {
  ColumnLinear linear{mlp.name + "_" + what, input};
  linear.outputs = {{output, mlp.width}};
  linear.weight = b.parameter(linear.name + "_weight", Shape::elements(mlp.width, shape.hidden));
  if (mlp.bias) linear.bias = b.parameter(linear.name + "_bias", static_cast<double>(mlp.width));
  return linear;
}

std::vector<TensorId> project_up(BlockBuilder& b, const Model& model, const Shape& shape,
                                 const FeedForward& mlp, const std::string& prefix, TensorId input) {
  if (model.gated_mlp && shape.splits_gate) {
    const auto outputs = column_linears(b, shape, mlp.name + "_gate_and_up",
                                        {projection_to(b, shape, mlp, "gate", prefix + "gate", input),
                                         projection_to(b, shape, mlp, "up", prefix + "up", input)});
    return {outputs[0].front(), outputs[1].front()};
  }
  ColumnLinear up{mlp.name + "_up", input};
  if (model.gated_mlp) up.outputs.push_back({prefix + "gate", mlp.width});
  up.outputs.push_back({prefix + "up", mlp.width});
  const std::int64_t width = mlp.width * static_cast<std::int64_t>(up.outputs.size());
  up.weight = b.parameter(mlp.name + "_up_weight", Shape::elements(width, shape.hidden),
                          static_cast<std::int16_t>(up.outputs.size()));
  if (mlp.bias) up.bias = b.parameter(mlp.name + "_up_bias", static_cast<double>(width));

  return column_linear(b, shape, up);
}

}  // namespace

Branch feed_forward(BlockBuilder& b, const Model& model, const Shape& shape, const FeedForward& mlp,
                    TensorId input) {
  const std::string prefix = mlp.name == "mlp" ? "" : mlp.name + "_";
  const std::vector<TensorId> projected = project_up(b, model, shape, mlp, prefix, input);
  const double elements = Shape::elements(shape.tokens, mlp.width);
  const TensorId activated = activate_as_planned(b, model, shape, prefix + "activation", projected, elements);
  Branch branch{row_linear(b, shape, mlp.name + "_down", activated, mlp.width, shape.tp_comm_fc2_sms)};
  if (mlp.bias) branch.bias = b.parameter(mlp.name + "_down_bias", static_cast<double>(shape.hidden));
  return branch;
}

}  // namespace rehearse
