#include "plan/work/blocks.h"
#include "plan/work/eager.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

TensorId activate(BlockBuilder& b, const std::string& name, KernelTensors reads, double elements,
                  std::int64_t width, bool varying) {
  const Pointwise there = varying ? Pointwise::varying_activation : Pointwise::activation;
  const Pointwise back = varying ? Pointwise::varying_activation_backward : Pointwise::activation_backward;
  const TensorId output = b.activation(name == "activation" ? "activated" : name + "_output", elements);
  Kernel forward{name, there, reads, {output}};
  forward.width = width;
  b.forward(std::move(forward));
  b.undo([&b, name, back, width, reads, output] {
    KernelTensors needs = {b.gradient_of(output)}, makes;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const bool is_input = reads.slot(i) == Slot::operand;
      needs.push_back(reads[i], is_input ? Slot::input : reads.slot(i));
      makes.push_back(b.gradient_like(reads[i]), reads.slot(i));
    }
    Kernel backward{name + "_backward", back, needs, makes};
    backward.width = width;
    b.backward_input(std::move(backward));
  });
  return output;
}

namespace {

// PyTorch's own GELU is one kernel already.
TensorId activate_as_planned(BlockBuilder& b, const Model& model, const Shape& shape, const std::string& name,
                             const std::vector<TensorId>& projected, std::int64_t width) {
  const double elements = Shape::elements(shape.tokens, width);
  if (shape.fused_activation || !(model.gated_mlp || model.squared_relu))
    return activate(b, name, projected, elements, width);
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

// Weights of the activation itself, held by every rank. Their gradients are sums over all activated elements.
void add_activation_weights(BlockBuilder& b, const Model& model, const std::string& name,
                            const std::vector<TensorId>& projected, TensorId activated) {
  const TensorId weights =
      b.parameter(name + "_activation_weights", static_cast<double>(model.activation_weights));
  b.undo([&b, name, projected, activated, weights] {
    b.backward_weight({name + "_activation_weights_gradient",
                       Pointwise::bias_gradient,
                       {b.gradient_of(activated), projected.front()},
                       {b.parameter_gradient(weights)}});
  });
}

}  // namespace

Branch feed_forward(BlockBuilder& b, const Model& model, const Shape& shape, const FeedForward& mlp,
                    TensorId input) {
  const std::string prefix = mlp.name == "mlp" ? "" : mlp.name + "_";
  const std::vector<TensorId> projected = project_up(b, model, shape, mlp, prefix, input);
  const TensorId activated =
      activate_as_planned(b, model, shape, prefix + "activation", projected, mlp.width);
  if (model.activation_weights > 0) add_activation_weights(b, model, mlp.name, projected, activated);
  Branch branch{row_linear(b, shape, mlp.name + "_down", activated, mlp.width, shape.tp_comm_fc2_sms)};
  if (mlp.bias) branch.bias = b.parameter(mlp.name + "_down_bias", static_cast<double>(shape.hidden));
  return branch;
}

}  // namespace rehearse
