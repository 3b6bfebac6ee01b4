#include "plan/work/blocks.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

TensorId activate(BlockBuilder& b, const std::string& name, TensorId up, double elements, TensorId weights) {
  const TensorId output = b.activation(name == "activation" ? "activated" : name + "_output", elements);
  std::vector<TensorId> reads = {up};
  if (weights >= 0) reads.push_back(weights);
  b.forward({name, Pointwise::activation, reads, {output}});
  b.undo([&b, name, reads, output] {
    std::vector<TensorId> needs = {b.gradient_of(output)}, makes;
    for (const TensorId read : reads) {
      needs.push_back(read);
      makes.push_back(b.new_gradient(read));
    }
    b.backward_input({name + "_backward", Pointwise::activation_backward, needs, makes});
  });
  return output;
}

Branch feed_forward(BlockBuilder& b, const Model& model, const Shape& shape, const FeedForward& mlp,
                    TensorId input) {
  const std::int64_t width = model.gated_mlp ? 2 * mlp.width : mlp.width;
  const std::string prefix = mlp.name == "mlp" ? "" : mlp.name + "_";
  ColumnLinear up{mlp.name + "_up", input};
  up.weight = b.parameter(mlp.name + "_up_weight", Shape::elements(width, shape.hidden));
  if (mlp.bias) up.bias = b.parameter(mlp.name + "_up_bias", static_cast<double>(width));
  up.outputs = {{prefix + (model.gated_mlp ? "gate_and_up" : "up"), width}};

  const TensorId activated = activate(b, prefix + "activation", column_linear(b, shape, up).front(),
                                      Shape::elements(shape.tokens, mlp.width));
  Branch branch{row_linear(b, shape, mlp.name + "_down", activated, mlp.width)};
  if (mlp.bias) branch.bias = b.parameter(mlp.name + "_down_bias", static_cast<double>(shape.hidden));
  return branch;
}

}  // namespace rehearse
