#include "plan/work/pointwise.h"

#include <algorithm>

#include "plan/work/eager.h"

namespace rehearse {

namespace {

constexpr double kMaskBytes = 1;

// A norm's three kernels.
struct NormTypes {
  Pointwise there, for_input, for_weight;
};
NormTypes types_of(Norm norm) {
  if (norm == Norm::rms) return {Pointwise::norm, Pointwise::norm_backward, Pointwise::norm_weight_gradient};
  if (norm == Norm::layer_plain)
    return {Pointwise::plain_norm, Pointwise::plain_norm_backward, Pointwise::norm_weight_gradient};
  return {Pointwise::layer_norm, Pointwise::layer_norm_backward, Pointwise::layer_norm_weight_gradient};
}

Kernel of_width(std::int64_t width, Kernel kernel) {
  kernel.width = width;
  return kernel;
}

}  // namespace

TensorId normalise(BlockBuilder& b, const std::string& name, Norm norm, TensorId input, std::int64_t width,
                   bool into_fp8, std::int64_t groups) {
  if (norm == Norm::rms && !b.shape().fused_norm) return normalise_eagerly(b, name, input, width);
  const TensorId weight =
      norm == Norm::layer_plain ? TensorId{-1} : b.parameter(name + "_weight", static_cast<double>(width));
  const TensorId bias =
      norm == Norm::layer ? b.parameter(name + "_bias", static_cast<double>(width)) : TensorId{-1};
  const TensorId output =
      b.activation(name + "_output", b[input].elements, into_fp8 ? 1 : b[input].element_bytes);
  if (b.shape().wide_norms) input = widen(b, name, input);
  const NormTypes types = types_of(norm);
  const std::int64_t together = width / std::max<std::int64_t>(1, groups);
  if (groups > 0) b.share_out(weight, {{width}});
  KernelTensors reads = {input};
  if (weight >= 0) reads.push_back(weight, Slot::weight);
  if (bias >= 0) reads.push_back(bias, Slot::bias);
  b.forward(of_width(together, {name, types.there, reads, {output}}));
  b.undo([&b, name, types, together, input, weight, bias, output] {
    const TensorId gradient = b.gradient_of(output);
    KernelTensors needs = {gradient, {input, Slot::input}};
    if (weight >= 0) needs.push_back(weight, Slot::weight);
    b.backward_input(
        of_width(together, {name + "_backward", types.for_input, needs, {b.gradient_like(input)}}));
    if (weight < 0) return;
    KernelTensors gradients = {{b.parameter_gradient(weight), Slot::weight}};
    if (bias >= 0) gradients.push_back(b.parameter_gradient(bias), Slot::bias);
    b.backward_weight(
        of_width(together,
                 {name + "_weight_gradient", types.for_weight, {gradient, {input, Slot::input}}, gradients}));
  });
  return output;
}

TensorId add_table(BlockBuilder& b, const AddedTable& added, TensorId rows) {
  const TensorId table = b.parameter(added.table, added.elements);
  const TensorId output = b.activation(added.output, b[rows].elements);
  b.forward({added.kernel, Pointwise::positions, {rows, table}, {output}});
  b.undo([&b, name = added.table + "_gradient", rows, table, output] {
    b.pass_gradient(output, rows);
    b.backward_weight(
        {name, Pointwise::positions_backward, {b.gradient_of(output)}, {b.parameter_gradient(table)}});
  });
  return output;
}

namespace {

// NeMo of 2022 adds a bias that is expanded to the residual's shape. torch.autocast's cast to 16 bits writes
// the expanded bias, and an fp32 copy of its gradient (fused_bias_dropout_add.py, _cast_if_autocast_enabled).
SlottedTensor expand(BlockBuilder& b, const Residual& sum, double elements) {
  if (!b.shape().expands_biases) return {sum.bias, Slot::bias};
  const TensorId expanded = b.activation(sum.name + "_bias_expanded", elements);
  b.forward({sum.name + "_bias_expanded", Pointwise::eager, {sum.bias}, {expanded}});
  return expanded;
}

void bias_gradient(BlockBuilder& b, const Residual& sum) {
  constexpr double kFp32Bytes = 4;
  TensorId gradient = b.gradient_of(sum.branch);
  if (b.shape().expands_biases) {
    const TensorId wide =
        b.scratch_gradient(sum.name + "_bias_widened_gradient", b[gradient].elements, kFp32Bytes);
    b.backward_weight({sum.name + "_bias_widened", Pointwise::eager, {gradient}, {wide}});
    gradient = wide;
  }
  b.backward_weight(
      {sum.name + "_bias_gradient", Pointwise::bias_gradient, {gradient}, {b.parameter_gradient(sum.bias)}});
}

}  // namespace

TensorId add_residual(BlockBuilder& b, const Residual& sum, const std::string& output_name) {
  KernelTensors reads = {{sum.residual, Slot::residual}, sum.branch};
  const double elements = b[sum.residual].elements;
  if (sum.bias >= 0) {
    const SlottedTensor bias = expand(b, sum, elements);
    reads.push_back(bias.tensor, bias.slot);
  }
  const TensorId output = b.activation(output_name, elements);
  const TensorId mask = sum.dropout ? b.activation(sum.name + "_mask", elements, kMaskBytes) : TensorId{-1};
  if (sum.dropout) b.mark(mask, TensorUse::mask);
  KernelTensors writes = {output};
  if (sum.dropout) writes.push_back(mask, Slot::mask);
  b.forward({sum.name, sum.dropout ? Pointwise::dropout : Pointwise::add, reads, writes});
  b.undo([&b, sum, output, mask] {
    b.pass_gradient(output, sum.residual);
    if (sum.dropout) {
      b.backward_input({sum.name + "_backward",
                        Pointwise::dropout_backward,
                        {b.gradient_of(output), {mask, Slot::mask}},
                        {b.new_gradient(sum.branch)}});
    } else {
      b.pass_gradient(output, sum.branch);
    }
    if (sum.bias >= 0) bias_gradient(b, sum);
  });
  return output;
}

namespace {

TensorId drop(BlockBuilder& b, const std::string& name, TensorId input, const std::string& output_name,
              Pointwise there, Pointwise back) {
  const TensorId output = b.activation(output_name, b[input].elements);
  const TensorId mask = b.activation(name + "_mask", b[input].elements, kMaskBytes);
  b.mark(mask, TensorUse::mask);
  b.forward({name, there, {input}, {output, {mask, Slot::mask}}});
  b.undo([&b, name, back, input, output, mask] {
    b.backward_input(
        {name + "_backward", back, {b.gradient_of(output), {mask, Slot::mask}}, {b.new_gradient(input)}});
  });
  return output;
}

}  // namespace

TensorId drop_out(BlockBuilder& b, const std::string& name, TensorId input, const std::string& output_name) {
  return drop(b, name, input, output_name, Pointwise::dropout, Pointwise::dropout_backward);
}

TensorId drop_scores(BlockBuilder& b, const std::string& name, TensorId scores,
                     const std::string& output_name) {
  return drop(b, name, scores, output_name, Pointwise::score_dropout, Pointwise::score_dropout_backward);
}

std::vector<TensorId> rotate(BlockBuilder& b, TensorId query, TensorId key) {
  if (!b.shape().fused_rotary) {
    const auto turn = b.shape().rotates_halves ? rotate_halves_eagerly : rotate_eagerly;
    return {turn(b, "query", query), turn(b, "key", key)};
  }
  const TensorId query_out = b.activation("query_rotated", b[query].elements);
  const TensorId key_out = b.activation("key_rotated", b[key].elements);
  b.forward({"rotary", Pointwise::rotary, {query, key}, {query_out, key_out}});
  b.undo([&b, query, key, query_out, key_out] {
    b.backward_input({"rotary_backward",
                      Pointwise::rotary_backward,
                      {b.gradient_of(query_out), b.gradient_of(key_out)},
                      {b.new_gradient(query), b.new_gradient(key)}});
  });
  return {query_out, key_out};
}

}  // namespace rehearse
