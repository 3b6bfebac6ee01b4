#include "launch/views.h"

namespace rehearse {

namespace {

using namespace kernels;  // every call's name

Calls exponentials(const Launch& launch, std::int64_t rows) {
  LossExponentials call;
  call.logits = launch.read(0, rows);
  call.labels = launch.whole_read(Slot::labels);
  call.maximum = launch.whole_read(Slot::maximum);
  call.exponentials = launch.write(0, rows);
  call.target = launch.whole_write(Slot::target);
  call.sum = launch.whole_write(Slot::exponential_sum);
  call.first = launch.bound.first_vocabulary_row;
  return {call};
}

Calls backward(const Launch& launch, Pointwise type, std::int64_t rows) {
  const float scale = launch.bound.loss_scale;
  switch (type) {
    case Pointwise::narrow_logits:
      return {Cast{launch.read(0, rows), launch.write(0, rows)}};
    case Pointwise::likelihood_backward:
      return {LikelihoodBackward{launch.whole_read(Slot::labels), launch.write(0, rows), scale}};
    case Pointwise::log_softmax_backward:
      return {LogSoftmaxBackward{launch.read(0, rows), launch.read(1, rows), launch.write(0, rows)}};
    case Pointwise::token_loss_backward:
      return {TokenLossBackward{launch.read(0, rows), launch.whole_read(Slot::labels),
                                launch.whole_read(Slot::log_sum_exp), launch.write(0, rows), scale}};
    case Pointwise::loss_backward:
      return {LossBackward{launch.read(0, rows), launch.whole_read(Slot::labels), launch.write(0, rows),
                           launch.bound.first_vocabulary_row, scale}};
    default:  // loss_part: one call makes all of the gradient
      return {};
  }
}

}  // namespace

Calls loss_calls(const Launch& launch, Pointwise type) {
  const std::int64_t rows = launch.bound.shape.tokens;
  switch (type) {
    case Pointwise::widen_logits:
      return {Cast{launch.read(0, rows), launch.write(0, rows)}};
    case Pointwise::loss_maximum:
      return {LossMaximum{launch.read(0, rows), launch.whole_write(Slot::maximum)}};
    case Pointwise::loss_shift:
      return {LossShift{launch.read(0, rows), launch.whole_read(Slot::maximum), launch.write(0, rows)}};
    case Pointwise::loss_sum:
      return {LossSum{launch.read(0, rows), launch.whole_write(Slot::exponential_sum)}};
    case Pointwise::loss_exponentials:
      return exponentials(launch, rows);
    case Pointwise::log_softmax:
      return {LogSoftmax{launch.read(0, rows), launch.whole_read(Slot::labels), launch.write(0, rows),
                         launch.whole_write(Slot::loss)}};
    case Pointwise::token_loss:
      return {TokenLoss{launch.read(0, rows), launch.whole_read(Slot::labels),
                        launch.whole_write(Slot::log_sum_exp), launch.whole_write(Slot::loss)}};
    case Pointwise::loss:
      return {Loss{launch.read(0, rows), launch.whole_read(Slot::target),
                   launch.whole_read(Slot::exponential_sum), launch.write(0, rows),
                   launch.whole_write(Slot::loss)}};
    default:
      return backward(launch, type, rows);
  }
}

}  // namespace rehearse
