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

bool is_quantized(const BlockBuilder& b, TensorId tensor) {
  return b[tensor].element_bytes <= 1;
}

// Tensors are named by the type into which they were quantized.
std::string named(const Shape& shape, const std::string& name) {
  return name + (shape.fp4 ? "_fp4" : "_fp8");
}

// Transformer Engine rounds gradients in fp4 at random (common/recipe, NVFP4BlockScaling).
Pointwise kind_of(const Shape& shape, bool of_gradient) {
  if (shape.fp4) return of_gradient ? Pointwise::quantize_fp4_at_random : Pointwise::quantize_fp4;
  return shape.scaled_by_block ? Pointwise::quantize_blocks : Pointwise::quantize;
}

// Whether one kernel of Transformer Engine writes rows and columns.
bool writes_both(const Shape& shape) {
  return !shape.transposes_kept && !shape.either_layout;
}

// The maximum that scales the tensor, found by the kernel that wrote it or by a pass over it; -1: known
// before.
TensorId maximum(BlockBuilder& b, const Shape& shape, Emit emit, const std::string& name,
                 const std::vector<TensorId>& from) {
  if (!shape.dynamic_scaling || is_quantized(b, from.front())) return -1;
  if (const TensorId found = b.maximum_of(from.front()); found >= 0) return found;
  const double scales = shape.scaled_by_row ? static_cast<double>(shape.tokens) : 1;
  const TensorId made = b.activation(name + "_maximum", scales, kMaximumBytes);
  const Pointwise type = shape.fp4    ? Pointwise::find_maxima_fp4
                         : scales > 1 ? Pointwise::find_row_maxima
                                      : Pointwise::find_maximum;
  Kernel seek{name + "_maximum", type, from, {made}};
  if (shape.quantized_apart > 1) seek.launches = 2 * shape.quantized_apart;  // then the scale from it
  (b.*emit)(seek);
  return made;
}

// Ranks with a shard each agree on its scale (Transformer Engine, csrc/quantizer.cpp, with_amax_reduction).
TensorId maximum_of_shards(BlockBuilder& b, const Shape& shape, Emit emit, const std::string& name,
                           TensorId own) {
  if (own < 0 || shape.transposes_kept) return own;
  const TensorId of_all = b.activation(name + "_maximum_of_all", 1, kMaximumBytes);
  (b.*emit)({name + "_maximum_all_reduce",
             Collective{.op = CollectiveOp::all_reduce,
                        .group = CommGroup::tensor,
                        .bytes = kMaximumBytes,
                        .exchange = Exchange::maximum},
             {own},
             {of_all}});
  return of_all;
}

void quantize(BlockBuilder& b, const Shape& shape, Emit emit, const std::string& name,
              const std::vector<TensorId>& from, const KernelTensors& to, bool shard = false) {
  KernelTensors reads = from;
  TensorId scale = maximum(b, shape, emit, name, from);
  if (shard) scale = maximum_of_shards(b, shape, emit, name, scale);
  if (scale >= 0) reads.push_back(scale, Slot::scale);
  const bool of_gradient = b[from.front()].role == TensorRole::gradient;
  Kernel cast{name + "_quantise", kind_of(shape, of_gradient), reads, to};
  cast.launches = shape.quantized_apart;
  (b.*emit)(cast);
}

// A pass that reads and writes as many elements as `like` has.
Kernel rescaled(const std::string& name, TensorId like) {
  return {name + "_rescaled", Pointwise::rearrange, {like, like}, {}};
}

}  // namespace

Quantized quantize_input(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId input) {
  if (!shape.quantized || is_quantized(b, input)) return {input, input};
  const std::string name = linear + "_operand";
  const TensorId rows = b.activation(named(shape, name), b[input].elements, shape.operand_bytes);
  if (!writes_both(shape)) {
    quantize(b, shape, &BlockBuilder::forward, name, {input}, {rows});
    return {rows, shape.scaled_by_row ? input : rows};
  }
  const TensorId columns =
      b.activation(named(shape, name) + "_columns", b[input].elements, shape.operand_bytes);
  quantize(b, shape, &BlockBuilder::forward, name, {input}, {rows, {columns, Slot::columns}});
  return {rows, columns, true};
}

Quantized quantize_shard(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId input) {
  if (!shape.quantized || shape.scaled_by_row || is_quantized(b, input)) return {input, input};
  const std::string name = linear + "_operand";
  Quantized shard{b.activation(named(shape, name), b[input].elements, shape.operand_bytes), -1,
                  shape.scaled_by_block};
  shard.kept = shard.rows;
  KernelTensors to = {shard.rows};
  if (shape.scaled_by_block) {
    shard.kept = b.activation(named(shape, name) + "_columns", b[input].elements, shape.operand_bytes);
    to.push_back(shard.kept, Slot::columns);
  }
  quantize(b, shape, &BlockBuilder::forward, name, {input}, to, true);
  b.undo([&b, input, rows = shard.rows] { b.pass_gradient(rows, input); });
  return shard;
}

TensorId input_by_columns(BlockBuilder& b, const Shape& shape, const std::string& linear,
                          const Quantized& input) {
  if (!shape.quantized || input.kept_by_columns || shape.either_layout) return input.kept;
  const TensorId columns = b.activation(named(shape, linear + "_operand_again") + "_columns",
                                        b[input.kept].elements, shape.operand_bytes);
  quantize(b, shape, &BlockBuilder::backward_weight, linear + "_operand_again", {input.kept},
           {{columns, Slot::columns}});
  return columns;
}

QuantizedGradient quantize_gradient(BlockBuilder& b, const Shape& shape, const std::string& linear,
                                    const std::vector<TensorId>& gradients) {
  const bool quantized = shape.quantized && is_quantized(b, gradients.front());
  if (!shape.quantized || (quantized && shape.either_layout)) return {gradients, gradients};
  const std::string name = linear + "_gradient";
  const double elements = elements_of(b, gradients);
  const auto emit = &BlockBuilder::backward_input;
  const auto make = [&](const char* layout) {
    return b.scratch_gradient(named(shape, name) + layout, elements, shape.operand_bytes);
  };
  if (quantized) {
    const TensorId columns = make("_columns");
    quantize(b, shape, emit, name, gradients, {{columns, Slot::columns}});
    return {gradients, {columns}};
  }
  const TensorId rows = make("");
  if (shape.either_layout) {
    quantize(b, shape, emit, name, gradients, {rows});
    return {{rows}, {rows}};
  }
  const TensorId columns = make("_columns");
  if (shape.scaled_by_row) {
    quantize(b, shape, emit, name, gradients, {rows});
    quantize(b, shape, emit, name + "_again", gradients, {{columns, Slot::columns}});
  } else {
    quantize(b, shape, emit, name, gradients, {rows, {columns, Slot::columns}});
  }
  return {{rows}, {columns}};
}

void scale_input_gradient(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId gradient) {
  if (shape.quantized && shape.scaled_by_row)
    b.backward_input(rescaled(linear + "_input_gradient", gradient));
}

void scale_weight_gradient(BlockBuilder& b, const Shape& shape, const std::string& linear, TensorId weight) {
  if (shape.quantized && shape.scaled_by_row)
    b.backward_weight(rescaled(linear + "_weight_gradient", weight));
}

Quantized quantize_gradient_shard(BlockBuilder& b, const Shape& shape, const std::string& name,
                                  TensorId gradient) {
  if (!shape.quantized || shape.scaled_by_row) return {gradient, gradient};
  const auto make = [&](const char* layout) {
    return b.scratch_gradient(named(shape, name + "_shard") + layout, b[gradient].elements,
                              shape.operand_bytes);
  };
  Quantized shard{make(""), -1, shape.scaled_by_block};
  shard.kept = shard.rows;
  KernelTensors to = {shard.rows};
  if (shape.scaled_by_block) {
    shard.kept = make("_columns");
    to.push_back(shard.kept, Slot::columns);
  }
  quantize(b, shape, &BlockBuilder::backward_input, name + "_shard", {gradient}, to, true);
  return shard;
}

}  // namespace rehearse
