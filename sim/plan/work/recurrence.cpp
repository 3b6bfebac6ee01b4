#include "plan/work/recurrence.h"

namespace rehearse {

namespace {

constexpr double kSumOfTokensBytes = 4;  // of gradients of parameters, summed over the tokens of a microbatch

}  // namespace

std::vector<TensorId> sums_of(BlockBuilder& b, const std::vector<TensorId>& parameters) {
  std::vector<TensorId> sums;
  for (const TensorId parameter : parameters)
    sums.push_back(b.scratch_gradient(b[parameter].name + "_sum", b[parameter].elements, kSumOfTokensBytes));
  return sums;
}

void add_sums(BlockBuilder& b, const std::string& name, const std::vector<TensorId>& sums,
              const std::vector<TensorId>& parameters) {
  std::vector<TensorId> gradients;
  for (const TensorId parameter : parameters) gradients.push_back(b.parameter_gradient(parameter));
  b.backward_weight({name, Pointwise::accumulate_sums, sums, gradients});
}

std::vector<TensorId> convolve(BlockBuilder& b, const RecurrentShare& share,
                               const ShortConvolution& convolution) {
  std::int64_t channels = 0;
  std::vector<TensorId> outputs;
  for (const auto& [name, width] : convolution.outputs) {
    outputs.push_back(b.activation(name, share.per_token(width)));
    channels += width;
  }
  std::vector<TensorId> parameters = {
      b.parameter("convolution_weight", Shape::elements(channels, convolution.reach))};
  if (convolution.bias) parameters.push_back(b.parameter("convolution_bias", static_cast<double>(channels)));
  std::vector<TensorId> reads = {convolution.input};
  reads.insert(reads.end(), parameters.begin(), parameters.end());
  b.forward({"convolution", Pointwise::convolution, reads, outputs});
  b.undo([&b, reads, parameters, outputs] {
    std::vector<TensorId> needs;
    for (const TensorId output : outputs) needs.push_back(b.gradient_of(output));
    needs.insert(needs.end(), reads.begin(), reads.end());
    std::vector<TensorId> makes = {b.new_gradient(reads.front())};
    const std::vector<TensorId> sums = sums_of(b, parameters);
    makes.insert(makes.end(), sums.begin(), sums.end());
    b.backward_input({"convolution_backward", Pointwise::convolution_backward, needs, makes});
    add_sums(b, "convolution_weight_gradient", sums, parameters);
  });
  return outputs;
}

Branch recurrence(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input) {
  switch (model.recurrence->kind) {
    case RecurrenceKind::gated_delta_rule:
    case RecurrenceKind::kimi_delta:
      return delta_rule(b, model, plan, shape, input);
    case RecurrenceKind::lightning:
      return lightning_attention(b, model, shape, input);
    case RecurrenceKind::selective_scan:
      return selective_scan(b, model, shape, input);
    case RecurrenceKind::short_convolution:
      return short_convolution(b, model, shape, input);
  }
  return {};
}

}  // namespace rehearse
