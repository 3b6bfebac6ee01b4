#include "plan/work/quantise.h"

namespace rehearse {

namespace {

constexpr double kMaximumBytes = 4;

using Emit = void (BlockBuilder::*)(Kernel);

double elements_of(const BlockBuilder& b, const std::vector<TensorId>& tensors) {
  double elements = 0;
  for (const TensorId tensor : tensors) elements += b[tensor].elements;
  return elements;
}

bool is_quantised(const BlockBuilder& b, TensorId tensor) {
  return b[tensor].element_bytes == 1;
}

void quantise(BlockBuilder& b, const Shape& shape, Emit emit, const std::string& name,
              const std::vector<TensorId>& from, const std::vector<TensorId>& to) {
  std::vector<TensorId> reads = from;
  if (shape.dynamic_scaling && !is_quantised(b, from.front())) {
    const double scales = shape.scaled_by_row ? static_cast<double>(shape.tokens) : 1;
    const TensorId maximum = b.activation(name + "_maximum", scales, kMaximumBytes);
    (b.*emit)({name + "_maximum", Pointwise::quantise, from, {maximum}});
    reads.push_back(maximum);
  }
  (b.*emit)({name + "_quantise", Pointwise::quantise, reads, to});
}

// Of as many elements as `like`, each read and written.
Kernel rescaled(const std::string& name, TensorId like) {
  return {name + "_rescaled", Pointwise::rearrange, {like, like}, {}};
}

}  // namespace

QuantisedInput quantise_input(BlockBuilder& b, const Shape& shape, const std::string& linear,
                              TensorId input) {
  if (!shape.fp8 || is_quantised(b, input)) return {input, input};
  const std::string name = linear + "_operand";
  const TensorId rows = b.activation(name + "_fp8", b[input].elements, 1);
  if (shape.dynamic_scaling) {
    quantise(b, shape, &BlockBuilder::forward, name, {input}, {rows});
    return {rows, shape.scaled_by_row ? input : rows};
  }
  const TensorId columns = b.activation(name + "_fp8_columns", b[input].elements, 1);
  quantise(b, shape, &BlockBuilder::forward, name, {input}, {rows, columns});
  return {rows, columns, true};
}

TensorId quantise_shard(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId input) {
  if (!shape.fp8 || shape.scaled_by_row || is_quantised(b, input)) return input;
  const TensorId rows = b.activation(linear + "_operand_fp8", b[input].elements, 1);
  quantise(b, shape, &BlockBuilder::forward, linear + "_operand", {input}, {rows});
  b.undo([&b, input, rows] { b.pass_gradient(rows, input); });
  return rows;
}

TensorId input_by_columns(BlockBuilder& b, const Shape& shape, const std::string& linear,
                          const QuantisedInput& input) {
  if (!shape.fp8 || input.kept_by_columns) return input.kept;
  const TensorId columns = b.activation(linear + "_operand_again_fp8_columns", b[input.kept].elements, 1);
  quantise(b, shape, &BlockBuilder::backward_weight, linear + "_operand_again", {input.kept}, {columns});
  return columns;
}

QuantisedGradient quantise_gradient(BlockBuilder& b, const Shape& shape, const std::string& linear,
                                    const std::vector<TensorId>& gradients) {
  if (!shape.fp8) return {gradients, gradients};
  const std::string name = linear + "_gradient";
  const double elements = elements_of(b, gradients);
  const TensorId columns = b.scratch_gradient(name + "_fp8_columns", elements, 1);
  if (is_quantised(b, gradients.front())) {
    quantise(b, shape, &BlockBuilder::backward_input, name, gradients, {columns});
    return {gradients, {columns}};
  }
  const TensorId rows = b.scratch_gradient(name + "_fp8", elements, 1);
  if (shape.scaled_by_row) {
    quantise(b, shape, &BlockBuilder::backward_input, name, gradients, {rows});
    quantise(b, shape, &BlockBuilder::backward_input, name + "_again", gradients, {columns});
  } else {
    quantise(b, shape, &BlockBuilder::backward_input, name, gradients, {rows, columns});
  }
  return {{rows}, {columns}};
}

void scale_input_gradient(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId gradient) {
  if (shape.fp8 && shape.scaled_by_row) b.backward_input(rescaled(linear + "_input_gradient", gradient));
}

void scale_weight_gradient(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId weight) {
  if (shape.fp8 && shape.scaled_by_row) b.backward_weight(rescaled(linear + "_weight_gradient", weight));
}

TensorId quantise_gradient_shard(BlockBuilder& b, const Shape& shape, const std::string& name,
                                 TensorId gradient) {
  if (!shape.fp8 || shape.scaled_by_row) return gradient;
  const TensorId rows = b.scratch_gradient(name + "_shard_fp8", b[gradient].elements, 1);
  quantise(b, shape, &BlockBuilder::backward_input, name + "_shard", {gradient}, {rows});
  return rows;
}

}  // namespace rehearse
