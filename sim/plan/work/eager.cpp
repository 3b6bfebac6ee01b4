#include "plan/work/eager.h"

#include <vector>

namespace rehearse {

namespace {

constexpr double kFp32Bytes = 4;  // bytes of fp32

// One operation of a name: reads some tensors, writes one.
class Eager {
 public:
  Eager(BlockBuilder& b, std::string name) : b_(b), name_(std::move(name)) {}

  TensorId forward(const char* what, std::vector<TensorId> reads, double elements, double element_bytes) {
    const TensorId output = b_.activation(name_ + "_" + what, elements, element_bytes);
    b_.forward({name_ + "_" + what, Pointwise::eager, std::move(reads), {output}});
    return output;
  }
  TensorId backward(const char* what, std::vector<TensorId> reads, double elements, double element_bytes) {
    const TensorId output = b_.scratch_gradient(name_ + "_" + what + "_gradient", elements, element_bytes);
    into(what, std::move(reads), output);
    return output;
  }
  void into(const char* what, std::vector<TensorId> reads, TensorId gradient) {
    b_.backward_input({name_ + "_" + what + "_backward", Pointwise::eager, std::move(reads), {gradient}});
  }

 private:
  BlockBuilder& b_;
  std::string name_;
};

struct NormTensors {
  TensorId input = -1, wide = -1, scale = -1, normed = -1, weight = -1, output = -1;
  double elements = 0, rows = 0, bytes = 0;
};

void norm_weight_gradient(BlockBuilder& b, const std::string& name, const NormTensors& of) {
  const TensorId product = b.scratch_gradient(name + "_weighed_product", of.elements, of.bytes);
  b.backward_weight(
      {name + "_weighed_product", Pointwise::eager, {b.gradient_of(of.output), of.normed}, {product}});
  b.backward_weight(
      {name + "_weight_gradient", Pointwise::eager, {product}, {b.parameter_gradient(of.weight)}});
}

// d(x r) = r dx + x dr with r = rsqrt(mean(x^2)). The square is differentiated as pow, as in
// derivatives.yaml.
void norm_input_gradient(BlockBuilder& b, const std::string& name, const NormTensors& of) {
  Eager eager(b, name);
  const double n = of.elements;
  const TensorId normed = eager.backward("weighed", {b.gradient_of(of.output), of.weight}, n, of.bytes);
  const TensorId scaled = eager.backward("narrowed", {normed}, n, kFp32Bytes);
  const TensorId direct = eager.backward("scaled_input", {scaled, of.scale}, n, kFp32Bytes);
  const TensorId product = eager.backward("scaled_product", {scaled, of.wide}, n, kFp32Bytes);
  const TensorId scale = eager.backward("scale", {product}, of.rows, kFp32Bytes);
  const TensorId squares = eager.backward("mean", {scale}, n, kFp32Bytes);
  const TensorId power = eager.backward("power", {of.wide}, n, kFp32Bytes);
  const TensorId twice = eager.backward("twice", {power}, n, kFp32Bytes);
  const TensorId of_square = eager.backward("squared", {squares, twice}, n, kFp32Bytes);
  if (of.bytes == kFp32Bytes) return eager.into("sum", {direct, of_square}, b.new_gradient(of.input));
  const TensorId sum = eager.backward("sum", {direct, of_square}, n, kFp32Bytes);
  eager.into("widened", {sum}, b.new_gradient(of.input));
}

}  // namespace

TensorId widen(BlockBuilder& b, const std::string& name, TensorId input) {
  Eager eager(b, name);
  const TensorId wide = eager.forward("widened", {input}, b[input].elements, kFp32Bytes);
  b.undo([&b, eager, input, wide]() mutable {
    eager.into("widened", {b.gradient_of(wide)}, b.new_gradient(input));
  });
  return wide;
}

TensorId normalise_eagerly(BlockBuilder& b, const std::string& name, TensorId input, std::int64_t width) {
  Eager eager(b, name);
  NormTensors of{.input = input, .elements = b[input].elements, .bytes = b[input].element_bytes};
  of.rows = of.elements / static_cast<double>(width);
  of.weight = b.parameter(name + "_weight", static_cast<double>(width));
  const bool narrow = of.bytes < kFp32Bytes;
  of.wide = narrow ? eager.forward("widened", {input}, of.elements, kFp32Bytes) : input;
  const TensorId squares = eager.forward("squared", {of.wide}, of.elements, kFp32Bytes);
  const TensorId mean = eager.forward("mean", {squares}, of.rows, kFp32Bytes);
  of.scale = eager.forward("scale", {mean}, of.rows, kFp32Bytes);
  of.normed = eager.forward("scaled", {of.wide, of.scale}, of.elements, kFp32Bytes);
  if (narrow) of.normed = eager.forward("narrowed", {of.normed}, of.elements, of.bytes);
  of.output = eager.forward("output", {of.normed, of.weight}, of.elements, of.bytes);
  b.undo([&b, name, of] {
    norm_input_gradient(b, name, of);
    norm_weight_gradient(b, name, of);
  });
  return of.output;
}

TensorId rotate_eagerly(BlockBuilder& b, const std::string& name, TensorId heads) {
  Eager eager(b, name);
  const double elements = b[heads].elements, bytes = b[heads].element_bytes;
  if (bytes == kFp32Bytes) {
    const TensorId rotated = eager.forward("rotated", {heads}, elements, kFp32Bytes);
    b.undo([&b, eager, heads, rotated]() mutable {
      eager.into("rotated", {b.gradient_of(rotated)}, b.new_gradient(heads));
    });
    return rotated;
  }
  const TensorId wide = eager.forward("widened", {heads}, elements, kFp32Bytes);
  const TensorId turned = eager.forward("turned", {wide}, elements, kFp32Bytes);
  const TensorId rotated = eager.forward("rotated", {turned}, elements, bytes);
  b.undo([&b, eager, heads, rotated, elements]() mutable {
    const TensorId of_turned = eager.backward("turned", {b.gradient_of(rotated)}, elements, kFp32Bytes);
    const TensorId of_wide = eager.backward("widened", {of_turned}, elements, kFp32Bytes);
    eager.into("rotated", {of_wide}, b.new_gradient(heads));
  });
  return rotated;
}

TensorId rotate_halves_eagerly(BlockBuilder& b, const std::string& name, TensorId heads) {
  Eager eager(b, name);
  const double n = b[heads].elements, bytes = b[heads].element_bytes;
  const TensorId negated = eager.forward("negated", {heads}, n / 2, bytes);
  const TensorId turned = eager.forward("turned", {negated, heads}, n, bytes);
  const TensorId cosine = eager.forward("cosine", {heads}, n, bytes);
  const TensorId sine = eager.forward("sine", {turned}, n, bytes);
  const TensorId rotated = eager.forward("rotated", {cosine, sine}, n, bytes);
  b.undo([&b, eager, heads, rotated, n, bytes]() mutable {
    const TensorId gradient = b.gradient_of(rotated);
    const TensorId of_turned = eager.backward("sine", {gradient}, n, bytes);
    const TensorId direct = eager.backward("cosine", {gradient}, n, bytes);
    const TensorId of_negated = eager.backward("negated", {of_turned}, n / 2, bytes);
    const TensorId first = eager.backward("first_half", {of_negated}, n, bytes);
    const TensorId second = eager.backward("second_half", {of_turned}, n, bytes);
    const TensorId halves = eager.backward("halves", {first, second}, n, bytes);
    eager.into("rotated", {direct, halves}, b.new_gradient(heads));
  });
  return rotated;
}

TensorId softmax_eagerly(BlockBuilder& b, TensorId scores, TensorId sinks) {
  Eager eager(b, "softmax");
  const double elements = b[scores].elements, bytes = b[scores].element_bytes;
  const bool narrow = bytes < kFp32Bytes;
  const TensorId wide = narrow ? eager.forward("widened", {scores}, elements, kFp32Bytes) : scores;
  const TensorId scaled = eager.forward("scaled", {wide}, elements, kFp32Bytes);
  const TensorId masked = eager.forward("masked", {scaled}, elements, kFp32Bytes);
  const TensorId joined = sinks < 0 ? masked : eager.forward("joined", {masked, sinks}, elements, kFp32Bytes);
  const TensorId shares = eager.forward("shares", {joined}, elements, kFp32Bytes);
  const TensorId output = narrow ? eager.forward("narrowed", {shares}, elements, bytes) : shares;
  b.undo([&b, eager, scores, sinks, shares, output, elements, narrow]() mutable {
    TensorId gradient = b.gradient_of(output);
    if (narrow) gradient = eager.backward("wide", {gradient}, elements, kFp32Bytes);
    if (sinks >= 0) gradient = eager.backward("padded", {gradient}, elements, kFp32Bytes);
    const TensorId of_masked = eager.backward("exponents", {gradient, shares}, elements, kFp32Bytes);
    if (sinks >= 0)  // sums one number of each row, a negligible part of the tensor
      b.backward_weight({"sinks_gradient", Pointwise::sinks_gradient, {}, {b.parameter_gradient(sinks)}});
    const TensorId of_scaled = eager.backward("masked", {of_masked}, elements, kFp32Bytes);
    if (!narrow) return eager.into("scaled", {of_scaled}, b.new_gradient(scores));
    const TensorId of_wide = eager.backward("scaled", {of_scaled}, elements, kFp32Bytes);
    eager.into("widened", {of_wide}, b.new_gradient(scores));
  });
  return output;
}

TensorId gate_eagerly(BlockBuilder& b, const std::string& name, TensorId gate, TensorId up, double elements) {
  Eager eager(b, name);
  const double bytes = b[gate].element_bytes;
  const TensorId silu = eager.forward("silu", {gate}, elements, bytes);
  const TensorId output = eager.forward("output", {silu, up}, elements, bytes);
  b.undo([&b, eager, gate, up, silu, output, elements, bytes]() mutable {
    const TensorId gradient = b.gradient_of(output);
    const TensorId of_silu = eager.backward("silu", {gradient, up}, elements, bytes);
    eager.into("up", {gradient, silu}, b.gradient_like(up));
    eager.into("gate", {of_silu, gate}, b.gradient_like(gate));
  });
  return output;
}

TensorId square_eagerly(BlockBuilder& b, const std::string& name, TensorId input, double elements) {
  Eager eager(b, name);
  const double bytes = b[input].element_bytes;
  const TensorId relu = eager.forward("relu", {input}, elements, bytes);
  const TensorId output = eager.forward("output", {relu}, elements, bytes);
  b.undo([&b, eager, input, relu, output, elements, bytes]() mutable {
    const TensorId power = eager.backward("power", {relu}, elements, bytes);
    const TensorId twice = eager.backward("twice", {power}, elements, bytes);
    const TensorId of_relu = eager.backward("relu", {b.gradient_of(output), twice}, elements, bytes);
    eager.into("input", {of_relu, relu}, b.gradient_like(input));
  });
  return output;
}

PackedHeads pack_heads(BlockBuilder& b, TensorId query, TensorId key, TensorId value) {
  const double bytes = b[query].element_bytes, of_query = b[query].elements, of_key = b[key].elements;
  const auto copy = [&](const char* name, double elements) { return b.activation(name, elements, bytes); };
  PackedHeads packed{copy("query_packed", of_query), copy("key_packed", of_key),
                     copy("value_packed", of_key)};
  const TensorId apart = copy("keys_and_values_apart", 2 * of_key);
  const TensorId joined = copy("keys_and_values_joined", 2 * of_key);
  b.forward({"heads_apart", Pointwise::eager, {query, key, value}, {packed.query, apart}});
  b.forward({"keys_and_values_joined", Pointwise::eager, {apart}, {joined}});
  b.forward({"keys_and_values_packed", Pointwise::eager, {joined}, {packed.key, packed.value}});
  if (of_query == of_key) packed.held = apart;
  b.undo([&b, query, key, value, packed, bytes, of_query, of_key] {
    const TensorId of_joined = b.scratch_gradient("keys_and_values_joined_gradient", 2 * of_key, bytes);
    b.backward_input({"keys_and_values_joined_backward",
                      Pointwise::eager,
                      {b.gradient_of(packed.key), b.gradient_of(packed.value)},
                      {of_joined}});
    std::vector<TensorId> reads = {b.gradient_of(packed.query), of_joined};
    if (packed.held >= 0) {
      const TensorId stacked = b.scratch_gradient("heads_stacked_gradient", of_query + 2 * of_key, bytes);
      b.backward_input({"heads_stacked_backward", Pointwise::eager, reads, {stacked}});
      reads = {stacked};
    }
    b.backward_input({"heads_apart_backward",
                      Pointwise::eager,
                      reads,
                      {b.new_gradient(query), b.new_gradient(key), b.new_gradient(value)}});
  });
  return packed;
}

}  // namespace rehearse
