#include "plan/work/tensor_parallel.h"

#include <memory>

#include "plan/work/quantise.h"

namespace rehearse {

namespace {

// Transformer Engine's default for the "pipeline" method.
constexpr std::int64_t kReduceScatterChunks = 4;

Kernel over_ranks(const std::string& name, CollectiveOp op, double bytes, TensorId from, TensorId to) {
  return {name, Collective{op, CommGroup::tensor, bytes}, {from}, {to}};
}

// The collective runs beside GEMMs of these weights in the other half of the backward pass.
Kernel beside(Kernel collective, const Shape& shape, std::vector<TensorId> weights, GemmPass pass) {
  if (shape.tp_backward_overlap) collective.overlap = {std::move(weights), pass};
  return collective;
}

// Each rank passes shards on round the ring, or copies those of the others, while GEMMs multiply the current
// shard.
Collective in_steps(const Shape& shape, double bytes) {
  return {CollectiveOp::send_receive, CommGroup::tensor, bytes / static_cast<double>(shape.tp), shape.tp - 1};
}

// torch.compile finds no GEMM of a gathered tensor that is quantized by rows in between (pytorch/pytorch
// issue 149990).
bool gathers_in_steps(const Shape& shape) {
  return shape.tp_comm_overlap && !(shape.quantized && shape.scaled_by_row);
}

Kernel copied(const std::string& name, TensorId tensor) {
  return {name, Pointwise::rearrange, {tensor, tensor}, {}};
}

// The kernels of a gather. GEMMs with the weights of `readers` read its result.
std::vector<Kernel> gather(const Shape& shape, const std::string& name, double bytes, TensorId from,
                           TensorId to, const Overlap& readers) {
  const Kernel whole = over_ranks(name + "_all_gather", CollectiveOp::all_gather, bytes, from, to);
  if (!gathers_in_steps(shape) || readers.weights.empty()) {
    if (shape.batch_first) return {whole, copied(name + "_moved", to)};
    return {whole};
  }
  const Kernel steps{name + "_all_gather", in_steps(shape, bytes), {from}, {to}, readers};
  if (shape.symmetric_memory) return {copied(name + "_shared", from), steps};
  return {steps};
}

// The gathered rows are dropped after the forward pass and gathered once more for the weight gradient.
TensorId all_rows_again(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear, TensorId kept,
                        std::int64_t width) {
  if (!shape.sequence_parallel || !shape.gathers_again || linear.gathered) return kept;
  const std::string name = b[linear.input].name + "_for_" + linear.name;
  const TensorId whole = b.activation(name, Shape::elements(shape.tokens, width), b[kept].element_bytes);
  b.backward_weight(
      beside(over_ranks(name + "_all_gather", CollectiveOp::all_gather, b[whole].bytes(), kept, whole), shape,
             {linear.weight}, GemmPass::input_gradient));
  return whole;
}

// The GEMM's output: that of one rank, if an all-reduce follows.
TensorId column_input_gradient(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear,
                               TensorId input, Gemm gemm, KernelTensors reads, bool all_reduce) {
  gemm.of_model = linear.of_model;
  gemm.weight = linear.weight;
  const std::string name = linear.name + "_input_gradient";
  const TensorId product =
      all_reduce ? b.scratch_gradient(name + "_partial", b[input].elements) : b.new_gradient(input);
  reads.push_back(linear.weight, Slot::weight);
  b.backward_input({name, b.input_gradient(gemm), reads, {product}});
  if (all_reduce)
    b.backward_input(beside(over_ranks(name + "_all_reduce", CollectiveOp::all_reduce,
                                       shape.token_bytes(gemm.n), product, b.new_gradient(input)),
                            shape, {linear.weight}, GemmPass::weight_gradient));
  return product;
}

void column_bias_gradient(BlockBuilder& b, const ColumnLinear& linear,
                          const std::vector<TensorId>& gradients) {
  if (linear.bias < 0) return;
  b.backward_weight({linear.name + "_bias_gradient",
                     Pointwise::bias_gradient,
                     gradients,
                     {b.parameter_gradient(linear.bias)}});
}

void column_weight_gradient(BlockBuilder& b, const ColumnLinear& linear, Gemm gemm, KernelTensors gradients,
                            TensorId input) {
  gemm.of_model = linear.of_model;
  gemm.weight = linear.weight;
  gradients.push_back(input, Slot::input);
  b.backward_weight({linear.name + "_weight_gradient",
                     b.weight_gradient(gemm),
                     gradients,
                     {b.parameter_gradient(linear.weight)}});
}

struct Product {
  std::vector<TensorId> outputs;
  std::int64_t width = 0;  // of all of them
};

RankShare share_of(const std::vector<Output>& outputs) {
  RankShare share;
  for (const Output& output : outputs) {
    if (output.parts.empty()) share.rows.push_back(output.width);
    share.rows.insert(share.rows.end(), output.parts.begin(), output.parts.end());
  }
  return share;
}

Product multiply(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear, TensorId input, Gemm gemm) {
  Product product;
  for (const Output& output : linear.outputs) {
    const double bytes = output.element_bytes > 0 ? output.element_bytes : shape.element_bytes;
    product.outputs.push_back(b.activation(output.name, Shape::elements(gemm.m, output.width), bytes));
    product.width += output.width;
  }
  if (shape.tp > 1)
    for (const TensorId parameter : {linear.weight, linear.bias})
      b.share_out(parameter, share_of(linear.outputs));
  KernelTensors reads = {input, {linear.weight, Slot::weight}};
  if (linear.bias >= 0) reads.push_back(linear.bias, Slot::bias);
  gemm.n = product.width;
  gemm.of_model = linear.of_model;
  gemm.weight = linear.weight;
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

// Operand of column-parallel layers, with all rows. Its columns are computed once for all of their weight
// gradients.
struct Operand {
  std::string name;
  TensorId input = -1;
  Quantized quantized;
  std::int64_t depth = 0;
  std::size_t readers = 1;
  std::shared_ptr<TensorId> by_columns = std::make_shared<TensorId>(-1);

  TensorId columns(BlockBuilder& b, const Shape& shape, TensorId kept) const {
    if (*by_columns < 0)
      *by_columns = input_by_columns(b, shape, name, {quantized.rows, kept, quantized.kept_by_columns});
    return *by_columns;
  }
};

std::vector<TensorId> multiply_columns(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear,
                                       const Operand& operand) {
  Gemm gemm{shape.tokens, 0, operand.depth};
  if (gathers_in_steps(shape)) gemm.chunks = shape.tp;
  const Product product = multiply(b, shape, linear, operand.quantized.rows, gemm);
  b.undo([&b, shape, linear, operand, product] {
    const std::int64_t depth = operand.depth;
    const std::vector<TensorId> gradients = gradients_of(b, product.outputs);
    const QuantizedGradient gradient = quantize_gradient(b, shape, linear.name, gradients);
    const TensorId made =
        column_input_gradient(b, shape, linear, operand.input, Gemm{shape.tokens, depth, product.width},
                              gradient.rows, shape.tp > 1 && !shape.sequence_parallel);
    if (operand.readers == 1) scale_input_gradient(b, shape, linear.name, made);
    const TensorId kept = all_rows_again(b, shape, linear, operand.quantized.kept, depth);
    column_bias_gradient(b, linear, gradients);
    column_weight_gradient(b, linear, Gemm{product.width, depth, shape.tokens}, gradient.columns,
                           operand.columns(b, shape, kept));
    scale_weight_gradient(b, shape, linear.name, linear.weight);
  });
  return product.outputs;
}

// The GEMM that wrote partial sums, if any. Also a rank's rows of their gradient by columns, once they exist.
struct Maker {
  std::string name;
  TensorId weight = -1;
  std::shared_ptr<TensorId> columns = nullptr;
};

// Sums the partial sums of all ranks.
TensorId reduce(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId partial,
                const Maker& maker) {
  if (shape.tp == 1) return partial;
  const bool scatter = shape.sequence_parallel;
  const double bytes = shape.token_bytes(shape.hidden);
  const TensorId sum = b.activation(name, shape.row_elements());
  Kernel reduce =
      over_ranks(name + (scatter ? "_reduce_scatter" : "_all_reduce"),
                 scatter ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, bytes, partial, sum);
  const bool in_chunks = shape.tp_comm_overlap && !maker.name.empty();
  if (in_chunks && shape.symmetric_memory) {
    Collective steps = in_steps(shape, bytes);
    steps.exchange = Exchange::partial_sums;
    reduce.what = steps;
    reduce.overlap = {{maker.weight}};
  } else if (in_chunks) {
    reduce.what = Collective{CollectiveOp::reduce_scatter, CommGroup::tensor, bytes / kReduceScatterChunks,
                             kReduceScatterChunks};
    reduce.overlap = {.weights = {maker.weight}, .exposed_calls = 1};
  }
  if (scatter && shape.batch_first && !in_chunks) b.forward(copied(name + "_moved", partial));
  b.forward(reduce);
  if (in_chunks && shape.symmetric_memory)
    b.forward({name + "_added_up", Pointwise::add_partials, {partial}, {sum}});
  b.undo([&b, shape, name, scatter, partial, sum, maker] {
    if (!scatter) return b.pass_gradient(sum, partial);
    TensorId shard = b.gradient_of(sum);
    if (!maker.name.empty()) {
      const Quantized quantized = quantize_gradient_shard(b, shape, name + "_gradient", shard);
      if (quantized.kept_by_columns) *maker.columns = quantized.kept;
      shard = quantized.rows;
    }
    const TensorId whole = b.new_gradient(partial, b[shard].element_bytes);
    Overlap readers;
    if (maker.weight >= 0) readers = {{maker.weight}, GemmPass::input_gradient};
    for (Kernel& kernel : gather(shape, name + "_gradient", b[whole].bytes(), shard, whole, readers))
      b.backward_input(std::move(kernel));
  });
  return sum;
}

// Block scales of rows do not apply to columns. So columns are gathered once more for the weight gradient
// (Transformer Engine, module/linear.py), with user buffers beside the input gradient's GEMM.
QuantizedGradient gradient_of_rows(BlockBuilder& b, const Shape& shape, const std::string& name,
                                   TensorId weight, TensorId product, TensorId columns) {
  if (columns < 0) return quantize_gradient(b, shape, name, {b.gradient_of(product)});
  const TensorId whole =
      b.scratch_gradient(name + "_gradient_columns_gathered", b[product].elements, shape.operand_bytes);
  Kernel gather = over_ranks(name + "_gradient_columns_all_gather", CollectiveOp::all_gather,
                             b[whole].bytes(), columns, whole);
  if (shape.tp_comm_overlap) gather.overlap = {{weight}, GemmPass::input_gradient};
  b.backward_weight(std::move(gather));
  return {{b.gradient_of(product)}, {whole}};
}

}  // namespace

TensorId all_rows(BlockBuilder& b, const Shape& shape, TensorId shard, std::int64_t width,
                  const std::string& reader, const std::vector<TensorId>& weights) {
  if (!shape.sequence_parallel) return shard;
  const std::string name = b[shard].name + (reader.empty() ? "_gathered" : "_gathered_for_" + reader);
  const TensorId whole = b.activation(name, Shape::elements(shape.tokens, width), b[shard].element_bytes);
  const double bytes = shape.token_bytes(width);
  for (Kernel& kernel : gather(shape, name, b[whole].bytes(), shard, whole, {weights}))
    b.forward(std::move(kernel));
  b.undo([&b, shape, name, bytes, shard, whole, weights] {
    if (shape.batch_first) b.backward_input(copied(name + "_gradient_moved", b.gradient_of(whole)));
    b.backward_input(beside(over_ranks(name + "_gradient_reduce_scatter", CollectiveOp::reduce_scatter, bytes,
                                       b.gradient_of(whole), b.new_gradient(shard)),
                            shape, weights, GemmPass::weight_gradient));
  });
  return whole;
}

std::vector<TensorId> column_linear(BlockBuilder& b, const Shape& shape, const ColumnLinear& linear) {
  return column_linears(b, shape, linear.name, {linear}).front();
}

std::vector<std::vector<TensorId>> column_linears(BlockBuilder& b, const Shape& shape,
                                                  const std::string& name,
                                                  const std::vector<ColumnLinear>& linears) {
  const ColumnLinear& first = linears.front();
  const std::int64_t depth = input_width(shape, first);
  const bool gathers = shape.sequence_parallel && !first.gathered;
  std::vector<TensorId> weights;
  for (const ColumnLinear& linear : linears) weights.push_back(linear.weight);
  Quantized shard{first.input, first.input};
  if (gathers) shard = quantize_shard(b, shape, name, first.input);
  const TensorId input = gathers ? all_rows(b, shape, shard.rows, depth, name, weights) : shard.rows;
  Operand operand{name, input, quantize_input(b, shape, name, input), depth, linears.size()};
  if (gathers && shape.gathers_again) {
    operand.quantized.kept = shard.kept;
    operand.quantized.kept_by_columns = shard.kept_by_columns;
  }
  std::vector<std::vector<TensorId>> outputs;
  for (const ColumnLinear& linear : linears) outputs.push_back(multiply_columns(b, shape, linear, operand));
  return outputs;
}

std::vector<TensorId> replicated_linear(BlockBuilder& b, const Shape& shape, ColumnLinear linear) {
  linear.of_model = static_cast<double>(shape.tokens) / static_cast<double>(shape.rows * shape.tp);
  Shape alone = shape;
  alone.tokens = shape.rows;
  alone.tp = 1;
  alone.sequence_parallel = alone.tp_comm_overlap = alone.symmetric_memory = alone.batch_first = false;
  return column_linear(b, alone, linear);
}

TensorId row_linear(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId input,
                    std::int64_t width, int sms_left) {
  const TensorId weight = b.parameter(name + "_weight", Shape::elements(width, shape.hidden));
  if (shape.tp > 1) b.share_out(weight, {.columns = width});
  const TensorId product =
      b.activation(shape.tp > 1 ? name + "_partial" : name + "_output", shape.token_elements());
  Gemm gemm{shape.tokens, shape.hidden, width};
  gemm.weight = weight;
  if (shape.tp_comm_overlap) {
    gemm.chunks = shape.symmetric_memory ? shape.tp : kReduceScatterChunks;
    gemm.sms_left = sms_left;
  }
  const Quantized operand = quantize_input(b, shape, name, input);
  const auto columns = std::make_shared<TensorId>(-1);
  b.forward({name, gemm, {operand.rows, {weight, Slot::weight}}, {product}});
  b.undo([&b, shape, name, input, operand, weight, product, width, columns] {
    const QuantizedGradient gradient = gradient_of_rows(b, shape, name, weight, product, *columns);
    Gemm input_gradient = b.input_gradient({shape.tokens, width, shape.hidden});
    Gemm weight_gradient = b.weight_gradient({shape.hidden, width, shape.tokens});
    input_gradient.weight = weight_gradient.weight = weight;
    if (gathers_in_steps(shape)) input_gradient.chunks = shape.tp;
    const TensorId made = b.new_gradient(input);
    b.backward_input(
        {name + "_input_gradient", input_gradient, {gradient.rows.front(), {weight, Slot::weight}}, {made}});
    scale_input_gradient(b, shape, name, made);
    const TensorId kept = input_by_columns(b, shape, name, operand);
    b.backward_weight({name + "_weight_gradient",
                       weight_gradient,
                       {gradient.columns.front(), {kept, Slot::input}},
                       {b.parameter_gradient(weight)}});
    scale_weight_gradient(b, shape, name, weight);
  });
  return reduce(b, shape, name + "_output", product, {name, weight, columns});
}

TensorId reduce_partial(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId partial) {
  return reduce(b, shape, name, partial, {});
}

}  // namespace rehearse
