#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

Kernel over_ranks(const Shape& shape, const std::string& name, CollectiveOp op, TensorId from, TensorId to) {
  return {name, Collective{op, Axis::tp, shape.token_elements() * shape.element_bytes}, {from}, {to}};
}

// All rows of `shard`, of which each rank holds shape.rows.
TensorId all_rows(BlockBuilder& b, const Shape& shape, TensorId shard) {
  if (!shape.sequence_parallel) return shard;
  const std::string name = b[shard].name;
  const TensorId whole = b.activation(name + "_gathered", shape.token_elements());
  b.forward(over_ranks(shape, name + "_all_gather", CollectiveOp::all_gather, shard, whole));
  b.undo([&b, shape, name, shard, whole] {
    b.backward_input(over_ranks(shape, name + "_gradient_reduce_scatter", CollectiveOp::reduce_scatter,
                                b.gradient_of(whole), b.new_gradient(shard)));
  });
  return whole;
}

// The gathered rows are dropped after the forward pass and gathered once more for the weight gradient.
TensorId all_rows_again(BlockBuilder& b, const Shape& shape, TensorId shard) {
  if (!shape.sequence_parallel) return shard;
  const std::string name = b[shard].name;
  const TensorId whole = b.activation(name + "_gathered_again", shape.token_elements());
  b.backward_weight(over_ranks(shape, name + "_all_gather", CollectiveOp::all_gather, shard, whole));
  return whole;
}

void column_input_gradient(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear, TensorId input,
                           std::int64_t width, std::vector<TensorId> reads) {
  const bool all_reduce = shape.tp > 1 && !shape.sequence_parallel;
  const TensorId product = all_reduce ? b.partial_gradient(input) : b.new_gradient(input);
  reads.push_back(linear.weight);
  b.backward_input(
      {linear.name + "_input_gradient", Gemm{shape.tokens, shape.hidden, width}, reads, {product}});
  if (!all_reduce) return;
  b.backward_input(over_ranks(shape, b[input].name + "_gradient_all_reduce", CollectiveOp::all_reduce,
                              product, b.new_gradient(input)));
}

}  // namespace

std::vector<TensorId> column_linear(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear) {
  const TensorId input = all_rows(b, shape, linear.input);
  std::vector<TensorId> outputs;
  std::int64_t width = 0;
  for (const Output& output : linear.outputs) {
    const double bytes = output.element_bytes > 0 ? output.element_bytes : shape.element_bytes;
    outputs.push_back(b.activation(output.name, Shape::elements(shape.tokens, output.width), bytes));
    width += output.width;
  }
  std::vector<TensorId> reads = {input, linear.weight};
  if (linear.bias >= 0) reads.push_back(linear.bias);
  b.forward({linear.name, Gemm{shape.tokens, width, shape.hidden}, reads, outputs});

  b.undo([&b, shape, linear, input, outputs, width] {
    std::vector<TensorId> gradients;
    for (const TensorId output : outputs) gradients.push_back(b.gradient_of(output));
    column_input_gradient(b, shape, linear, input, width, gradients);
    if (linear.bias >= 0) {
      b.backward_weight({linear.name + "_bias_gradient",
                         Pointwise::bias_gradient,
                         gradients,
                         {b.parameter_gradient(linear.bias)}});
    }
    std::vector<TensorId> operands = gradients;
    operands.push_back(all_rows_again(b, shape, linear.input));
    b.backward_weight({linear.name + "_weight_gradient",
                       Gemm{width, shape.hidden, shape.tokens},
                       operands,
                       {b.parameter_gradient(linear.weight)}});
  });
  return outputs;
}

TensorId row_linear(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId input,
                    std::int64_t width) {
  const TensorId weight = b.parameter(name + "_weight", Shape::elements(width, shape.hidden));
  const TensorId product =
      b.activation(shape.tp > 1 ? name + "_partial" : name + "_output", shape.token_elements());
  b.forward({name, Gemm{shape.tokens, shape.hidden, width}, {input, weight}, {product}});
  b.undo([&b, shape, name, input, weight, product, width] {
    const TensorId gradient = b.gradient_of(product);
    b.backward_input({name + "_input_gradient",
                      Gemm{shape.tokens, width, shape.hidden},
                      {gradient, weight},
                      {b.new_gradient(input)}});
    b.backward_weight({name + "_weight_gradient",
                       Gemm{shape.hidden, width, shape.tokens},
                       {gradient, input},
                       {b.parameter_gradient(weight)}});
  });
  return reduce_partial(b, shape, name + "_output", product);
}

TensorId reduce_partial(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId partial) {
  if (shape.tp == 1) return partial;
  const bool scatter = shape.sequence_parallel;
  const TensorId sum = b.activation(name, shape.row_elements());
  b.forward(over_ranks(shape, name + (scatter ? "_reduce_scatter" : "_all_reduce"),
                       scatter ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, partial, sum));
  b.undo([&b, shape, name, scatter, partial, sum] {
    if (!scatter) return b.pass_gradient(sum, partial);
    b.backward_input(over_ranks(shape, name + "_gradient_all_gather", CollectiveOp::all_gather,
                                b.gradient_of(sum), b.new_gradient(partial)));
  });
  return sum;
}

}  // namespace rehearse
