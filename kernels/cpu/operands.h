// Which tensors of a call may hold 16-bit numbers, and how does the call access them?
//
// Operands of one kind have one type, as on a GPU. Tensors not named here are fp32 or integers on every
// device: log-sum-exps, the loss except logits and their gradient, the router's weights, norms of gradients.
#pragma once

#include "kernels/call.h"

namespace rehearse::kernels::cpu {

enum class Access : std::uint8_t {
  read,
  write,   // every element, whatever it was
  update,  // some elements, or results that depend on the old values
};

// `count` matrices, `step` elements apart.
struct Operand {
  Tensor& tensor;
  Access access;
  std::size_t kind = 0;
  std::int64_t count = 1;
  std::int64_t* step = nullptr;
};
inline constexpr std::size_t kMaxOperands = 11, kMaxKinds = 3;  // of a call

template <typename Visit, typename... Tensors>
void visit_kind(std::size_t kind, const Visit& visit, Access access, Tensors&... tensors) {
  (visit(Operand{tensors, access, kind}), ...);
}
template <typename Visit, typename... Tensors>
void visit_all(const Visit& visit, Access access, Tensors&... tensors) {
  visit_kind(0, visit, access, tensors...);
}

// Calls visit(Operand) for each operand.
template <typename Other, typename Visit>
void for_each_operand(Other& /*has none*/, const Visit& /*visit*/) {}

template <typename Visit>
void for_each_operand(Multiply& call, const Visit& visit) {
  visit(Operand{call.a, Access::read, 0, call.batch, &call.step_a});
  visit(Operand{call.b, Access::read, 0, call.batch, &call.step_b});
  visit(Operand{call.c, call.accumulate ? Access::update : Access::write, 1, call.batch, &call.step_c});
  visit_kind(2, visit, Access::read, call.bias);
}

template <typename Visit>
void for_each_operand(AttentionForward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.query, call.key, call.value);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(AttentionBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.query, call.key, call.value, call.output);
  visit_all(visit, Access::write, call.query_gradient, call.key_gradient, call.value_gradient);
}

template <typename Visit>
void for_each_operand(AttentionMerge& call, const Visit& visit) {
  visit_all(visit, Access::read, call.part);
  visit_all(visit, Access::update, call.output);
}

template <typename Visit>
void for_each_operand(Softmax& call, const Visit& visit) {
  visit_all(visit, Access::read, call.scores);
  visit_all(visit, Access::write, call.probabilities);
}

template <typename Visit>
void for_each_operand(SoftmaxBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.probability_gradient, call.probabilities);
  visit_all(visit, Access::write, call.score_gradient);
}

template <typename Visit>
void for_each_operand(Norm& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input, call.weight, call.bias);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(NormInputGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.input, call.weight);
  visit_all(visit, Access::write, call.input_gradient);
}

template <typename Visit>
void for_each_operand(NormWeightGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.input);
  visit_kind(1, visit, Access::update, call.weight_gradient, call.bias_gradient);
}

template <typename Visit>
void for_each_operand(Rotary& call, const Visit& visit) {
  visit_all(visit, Access::read, call.query, call.key);
  visit_all(visit, Access::write, call.query_output, call.key_output);
}

template <typename Visit>
void for_each_operand(LatentRotary& call, const Visit& visit) {
  visit_all(visit, Access::read, call.query, call.shared_key, call.keys_and_values);
  visit_all(visit, Access::write, call.query_output, call.key_output, call.value_output);
}

template <typename Visit>
void for_each_operand(LatentRotaryBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.query_output_gradient, call.key_output_gradient,
            call.value_output_gradient);
  visit_all(visit, Access::write, call.query_gradient, call.shared_key_gradient,
            call.keys_and_values_gradient);
}

template <typename Visit>
void for_each_operand(Activation& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(ActivationBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.input);
  visit_all(visit, Access::write, call.input_gradient);
}

template <typename Visit>
void for_each_operand(Add& call, const Visit& visit) {
  for (Tensor& input : call.inputs) visit_all(visit, Access::read, input);
  visit_all(visit, Access::read, call.bias);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(Dropout& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input, call.bias, call.residual);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(DropoutBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient);
  visit_all(visit, Access::write, call.input_gradient);
}

template <typename Visit>
void for_each_operand(BiasGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient);
  visit_kind(1, visit, Access::update, call.bias_gradient);
}

template <typename Visit>
void for_each_operand(Cast& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input);
  visit_kind(1, visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(Quantize& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input);
}

template <typename Visit>
void for_each_operand(Randomise& call, const Visit& visit) {
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(Embedding& call, const Visit& visit) {
  visit_all(visit, Access::read, call.table);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(EmbeddingBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient);
  visit_kind(1, visit, Access::update, call.table_gradient);
}

template <typename Visit>
void for_each_operand(Positions& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input, call.table);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(PositionsBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient);
  visit_kind(1, visit, Access::update, call.table_gradient);
}

template <typename Visit>
void for_each_operand(LossMaximum& call, const Visit& visit) {
  visit_all(visit, Access::read, call.logits);
}

template <typename Visit>
void for_each_operand(LossExponentials& call, const Visit& visit) {
  visit_all(visit, Access::read, call.logits);
}

template <typename Visit>
void for_each_operand(LossBackward& call, const Visit& visit) {
  visit_all(visit, Access::write, call.logit_gradient);
}

template <typename Visit>
void for_each_operand(TokenLoss& call, const Visit& visit) {
  visit_all(visit, Access::read, call.logits);
}

template <typename Visit>
void for_each_operand(TokenLossBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.logits);
  visit_all(visit, Access::write, call.logit_gradient);
}

template <typename Visit>
void for_each_operand(TopK& call, const Visit& visit) {
  visit_all(visit, Access::read, call.scores);
}

template <typename Visit>
void for_each_operand(TopKBackward& call, const Visit& visit) {
  visit_all(visit, Access::read, call.scores);
  visit_all(visit, Access::write, call.score_gradient);
}

template <typename Visit>
void for_each_operand(SpreadRows& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input);
  visit_all(visit, Access::update, call.output);
}

template <typename Visit>
void for_each_operand(CollectRows& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(Convolution& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input, call.weight, call.bias);
  visit_all(visit, Access::write, call.output);
}

template <typename Visit>
void for_each_operand(ConvolutionInputGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.input, call.weight, call.bias);
  visit_all(visit, Access::write, call.input_gradient);
}

template <typename Visit>
void for_each_operand(ConvolutionWeightGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.input, call.weight, call.bias);
  visit_kind(1, visit, Access::update, call.weight_gradient, call.bias_gradient);
}

template <typename Visit>
void for_each_operand(Scan& call, const Visit& visit) {
  visit_all(visit, Access::read, call.gate, call.convolved, call.step);
  visit_kind(1, visit, Access::read, call.step_bias, call.decay_log, call.skip);
  visit_all(visit, Access::write, call.ungated, call.output);
}

template <typename Visit>
void for_each_operand(ScanInputGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.gate, call.convolved, call.step, call.ungated);
  visit_kind(1, visit, Access::read, call.step_bias, call.decay_log, call.skip);
  visit_all(visit, Access::write, call.gate_gradient, call.convolved_gradient, call.step_gradient);
}

template <typename Visit>
void for_each_operand(ScanWeightGradient& call, const Visit& visit) {
  visit_all(visit, Access::read, call.output_gradient, call.gate, call.convolved, call.step_gradient);
  visit_kind(1, visit, Access::update, call.step_bias_gradient, call.decay_log_gradient, call.skip_gradient);
}

template <typename Visit>
void for_each_operand(Adam& call, const Visit& visit) {
  visit_all(visit, Access::read, call.gradient);
  visit_kind(1, visit, Access::update, call.mean, call.square, call.master);
  visit_kind(2, visit, Access::write, call.weight);
}

template <typename Visit>
void for_each_operand(SquareSum& call, const Visit& visit) {
  visit_all(visit, Access::read, call.input);
}

}  // namespace rehearse::kernels::cpu
