#include "plan/work/tensor_parallel.h"

#include "plan/work/quantise.h"

namespace rehearse {

namespace {

// Transformer Engine's default for the "pipeline" method.
constexpr std::int64_t kReduceScatterChunks = 4;

Kernel over_ranks(const std::string& name, CollectiveOp op, double bytes, TensorId from, TensorId to) {
  return {name, Collective{op, Axis::tp, bytes}, {from}, {to}};
}

// Beside a kernel of the other half of the backward pass.
Kernel beside(Kernel collective, const Shape& shape, const std::string& gemm) {
  if (shape.tp_backward_overlap && !gemm.empty()) collective.overlap.with = gemm;
  return collective;
}

// Each rank passes shards on round the ring, while its GEMM multiplies the one that it has.
Kernel ring_gather(const Shape& shape, const std::string& name, double bytes, TensorId from, TensorId to,
                   const std::string& gemm) {
  const Collective send{CollectiveOp::send_receive, Axis::tp, bytes / static_cast<double>(shape.tp),
                        shape.tp - 1};
  return {name, send, {from}, {to}, {gemm}};
}

Kernel gather(const Shape& shape, const std::string& name, double bytes, TensorId from, TensorId to,
              const std::string& gemm) {
  return shape.tp_comm_overlap && !gemm.empty() ? ring_gather(shape, name, bytes, from, to, gemm)
                                                : over_ranks(name, CollectiveOp::all_gather, bytes, from, to);
}

// Where sequences lie apart: ranks' parts of them are moved into place, or apart.
bool moves_parts(const Shape& shape) {
  return shape.batch_first && !shape.tp_comm_overlap;
}

Kernel move_parts(const std::string& name, TensorId tensor) {
  return {name + "_moved", Pointwise::rearrange, {tensor, tensor}, {}};
}

// The gathered rows are dropped after the forward pass and gathered once more for the weight gradient.
TensorId all_rows_again(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear, TensorId kept,
                        std::int64_t width) {
  if (!shape.sequence_parallel || !shape.gathers_again || linear.gathered) return kept;
  const std::string name = b[linear.input].name + "_for_" + linear.name;
  const TensorId whole = b.activation(name, Shape::elements(shape.tokens, width), b[kept].element_bytes);
  b.backward_weight(
      beside(over_ranks(name + "_all_gather", CollectiveOp::all_gather, b[whole].bytes(), kept, whole), shape,
             linear.name + "_input_gradient"));
  return whole;
}

void column_input_gradient(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear, TensorId input,
                           Gemm gemm, std::vector<TensorId> reads, bool all_reduce) {
  gemm.of_model = linear.of_model;
  const std::string name = linear.name + "_input_gradient";
  const TensorId product =
      all_reduce ? b.scratch_gradient(name + "_partial", b[input].elements) : b.new_gradient(input);
  reads.push_back(linear.weight);
  b.backward_input({name, b.input_gradient(gemm), reads, {product}});
  if (!all_reduce) return;
  b.backward_input(beside(over_ranks(name + "_all_reduce", CollectiveOp::all_reduce,
                                     shape.token_bytes(gemm.n), product, b.new_gradient(input)),
                          shape, linear.name + "_weight_gradient"));
}

void column_bias_gradient(BlockBuilder& b, const ColumnLinear& linear,
                          const std::vector<TensorId>& gradients) {
  if (linear.bias < 0) return;
  b.backward_weight({linear.name + "_bias_gradient",
                     Pointwise::bias_gradient,
                     gradients,
                     {b.parameter_gradient(linear.bias)}});
}

void column_weight_gradient(BlockBuilder& b, const ColumnLinear& linear, Gemm gemm,
                            std::vector<TensorId> gradients, TensorId input) {
  gemm.of_model = linear.of_model;
  gradients.push_back(input);
  b.backward_weight({linear.name + "_weight_gradient",
                     b.weight_gradient(gemm),
                     gradients,
                     {b.parameter_gradient(linear.weight)}});
}

struct Product {
  std::vector<TensorId> outputs;
  std::int64_t width = 0;  // of all of them
};

Product multiply(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear, TensorId input, Gemm gemm) {
  Product product;
  for (const Output& output : linear.outputs) {
    const double bytes = output.element_bytes > 0 ? output.element_bytes : shape.element_bytes;
    product.outputs.push_back(b.activation(output.name, Shape::elements(gemm.m, output.width), bytes));
    product.width += output.width;
  }
  std::vector<TensorId> reads = {input, linear.weight};
  if (linear.bias >= 0) reads.push_back(linear.bias);
  gemm.n = product.width;
  gemm.of_model = linear.of_model;
  b.forward({linear.name, gemm, reads, product.outputs});
  return product;
}

std::vector<TensorId> gradients_of(BlockBuilder& b, const std::vector<TensorId>& outputs) {
  std::vector<TensorId> gradients;
  for (const TensorId output : outputs) gradients.push_back(b.gradient_of(output));
  return gradients;
}

std::int64_t input_width(const Shape& shape, const ColumnLinear& linear) {
  return linear.input_width > 0 ? linear.input_width : shape.hidden;
}

}  // namespace

TensorId all_rows(BlockBuilder& b, const Shape& shape, TensorId shard, std::int64_t width,
                  const std::string& linear) {
  if (!shape.sequence_parallel) return shard;
  const std::string name = b[shard].name + (linear.empty() ? "_gathered" : "_gathered_for_" + linear);
  const TensorId whole = b.activation(name, Shape::elements(shape.tokens, width), b[shard].element_bytes);
  const double bytes = shape.token_bytes(width);
  b.forward(gather(shape, name + "_all_gather", b[whole].bytes(), shard, whole, linear));
  if (moves_parts(shape)) b.forward(move_parts(name, whole));
  b.undo([&b, shape, name, bytes, shard, whole, linear] {
    if (moves_parts(shape)) b.backward_input(move_parts(name + "_gradient", b.gradient_of(whole)));
    b.backward_input(beside(over_ranks(name + "_gradient_reduce_scatter", CollectiveOp::reduce_scatter, bytes,
                                       b.gradient_of(whole), b.new_gradient(shard)),
                            shape, linear.empty() ? "" : linear + "_weight_gradient"));
  });
  return whole;
}

std::vector<TensorId> column_linear(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear) {
  const std::int64_t depth = input_width(shape, linear);
  const bool gathers = shape.sequence_parallel && !linear.gathered;
  const TensorId shard = gathers ? quantise_shard(b, shape, linear.name, linear.input) : linear.input;
  const TensorId input = gathers ? all_rows(b, shape, shard, depth, linear.name) : shard;
  QuantisedInput operand = quantise_input(b, shape, linear.name, input);
  if (gathers && shape.gathers_again) operand.kept = shard;
  Gemm gemm{shape.tokens, 0, depth};
  if (shape.tp_comm_overlap) gemm.chunks = shape.tp;
  const Product product = multiply(b, shape, linear, operand.rows, gemm);
  b.undo([&b, shape, linear, input, operand, product, depth] {
    const std::vector<TensorId> gradients = gradients_of(b, product.outputs);
    const QuantisedGradient gradient = quantise_gradient(b, shape, linear.name, gradients);
    column_input_gradient(b, shape, linear, input, Gemm{shape.tokens, depth, product.width}, gradient.rows,
                          shape.tp > 1 && !shape.sequence_parallel);
    QuantisedInput kept = operand;
    kept.kept = all_rows_again(b, shape, linear, operand.kept, depth);
    column_bias_gradient(b, linear, gradients);
    column_weight_gradient(b, linear, Gemm{product.width, depth, shape.tokens}, gradient.columns,
                           input_by_columns(b, shape, linear.name, kept));
  });
  return product.outputs;
}

std::vector<TensorId> replicated_linear(BlockBuilder& b, const Shape& shape, ColumnLinear linear) {
  const std::int64_t depth = input_width(shape, linear);
  linear.of_model = static_cast<double>(shape.tokens) / static_cast<double>(shape.rows * shape.tp);
  const Product product = multiply(b, shape, linear, linear.input, Gemm{shape.rows, 0, depth});
  b.undo([&b, shape, linear, product, depth] {
    const std::vector<TensorId> gradients = gradients_of(b, product.outputs);
    column_input_gradient(b, shape, linear, linear.input, Gemm{shape.rows, depth, product.width}, gradients,
                          false);
    column_bias_gradient(b, linear, gradients);
    column_weight_gradient(b, linear, Gemm{product.width, depth, shape.rows}, gradients, linear.input);
  });
  return product.outputs;
}

TensorId row_linear(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId input,
                    std::int64_t width, int sms_left) {
  const TensorId weight = b.parameter(name + "_weight", Shape::elements(width, shape.hidden));
  const TensorId product =
      b.activation(shape.tp > 1 ? name + "_partial" : name + "_output", shape.token_elements());
  Gemm gemm{shape.tokens, shape.hidden, width};
  if (shape.tp_comm_overlap) {
    gemm.chunks = kReduceScatterChunks;
    gemm.sms_left = sms_left;
  }
  const QuantisedInput operand = quantise_input(b, shape, name, input);
  b.forward({name, gemm, {operand.rows, weight}, {product}});
  b.undo([&b, shape, name, input, operand, weight, product, width] {
    const QuantisedGradient gradient = quantise_gradient(b, shape, name, {b.gradient_of(product)});
    Gemm input_gradient = b.input_gradient({shape.tokens, width, shape.hidden});
    if (shape.tp_comm_overlap) input_gradient.chunks = shape.tp;
    b.backward_input(
        {name + "_input_gradient", input_gradient, {gradient.rows.front(), weight}, {b.new_gradient(input)}});
    b.backward_weight({name + "_weight_gradient",
                       b.weight_gradient({shape.hidden, width, shape.tokens}),
                       {gradient.columns.front(), input_by_columns(b, shape, name, operand)},
                       {b.parameter_gradient(weight)}});
  });
  return reduce_partial(b, shape, name + "_output", product, name);
}

TensorId reduce_partial(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId partial,
                        const std::string& gemm) {
  if (shape.tp == 1) return partial;
  const bool scatter = shape.sequence_parallel;
  const double bytes = shape.token_bytes(shape.hidden);
  const TensorId sum = b.activation(name, shape.row_elements());
  Kernel reduce =
      over_ranks(name + (scatter ? "_reduce_scatter" : "_all_reduce"),
                 scatter ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, bytes, partial, sum);
  if (shape.tp_comm_overlap && !gemm.empty()) {
    reduce.what = Collective{CollectiveOp::reduce_scatter, Axis::tp, bytes / kReduceScatterChunks,
                             kReduceScatterChunks};
    reduce.overlap = {gemm, 1};
  }
  if (scatter && moves_parts(shape)) b.forward(move_parts(name, partial));
  b.forward(reduce);
  b.undo([&b, shape, name, scatter, partial, sum, gemm] {
    if (!scatter) return b.pass_gradient(sum, partial);
    TensorId shard = b.gradient_of(sum);
    if (!gemm.empty()) shard = quantise_gradient_shard(b, shape, name + "_gradient", shard);
    const TensorId whole = b.new_gradient(partial, b[shard].element_bytes);
    b.backward_input(gather(shape, name + "_gradient_all_gather", b[whole].bytes(), shard, whole,
                            gemm.empty() ? "" : gemm + "_input_gradient"));
    if (moves_parts(shape)) b.backward_input(move_parts(name + "_gradient", whole));
  });
  return sum;
}

}  // namespace rehearse
