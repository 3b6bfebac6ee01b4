#include "launch/views.h"

namespace rehearse {

namespace {

using namespace kernels;  // every call's name

kernels::Tensor read_whole(const Launch& launch, std::size_t i) {
  return launch.whole(launch.kernel.reads.at(i));
}
kernels::Tensor write_whole(const Launch& launch, std::size_t i) {
  return launch.whole(launch.kernel.writes.at(i));
}

Calls exponentials(const Launch& launch, std::int64_t rows) {
  LossExponentials call;
  call.logits = launch.read(0, rows);
  call.labels = read_whole(launch, 1);
  if (launch.reads_more_than(2)) call.maximum = read_whole(launch, 2);
  call.exponentials = launch.write(0, rows);
  call.target = write_whole(launch, 1);
  if (launch.kernel.writes.size() > 2) call.sum = write_whole(launch, 2);
  call.first = launch.bound.first_vocabulary_row;
  return {call};
}

}  // namespace

Calls loss_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.tokens;
  if (launch.named("logits_cast")) return {Cast{launch.read(0, rows), launch.write(0, rows)}};
  if (launch.named("maximum")) return {LossMaximum{launch.read(0, rows), write_whole(launch, 0)}};
  if (launch.named("shift"))
    return {LossShift{launch.read(0, rows), read_whole(launch, 1), launch.write(0, rows)}};
  if (launch.named("sum")) return {LossSum{launch.read(0, rows), write_whole(launch, 0)}};
  if (launch.named("exponentials")) return exponentials(launch, rows);
  if (launch.named("log_softmax"))
    return {LogSoftmax{launch.read(0, rows), launch.whole(launch.kernel.reads.back()), launch.write(0, rows),
                       write_whole(launch, 1)}};
  if (launch.named("token_loss"))
    return {TokenLoss{launch.read(0, rows), launch.whole(launch.kernel.reads.back()), write_whole(launch, 0),
                      write_whole(launch, 1)}};
  return {Loss{launch.read(0, rows), read_whole(launch, 1), read_whole(launch, 2), launch.write(0, rows),
               write_whole(launch, 1)}};
}

Calls loss_backward_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.tokens;
  const float scale = launch.bound.loss_scale;
  if (launch.kernel.name.starts_with("loss_part")) return {};  // one call makes all of the gradient
  if (launch.named("logits_cast_backward")) return {Cast{launch.read(0, rows), launch.write(0, rows)}};
  if (launch.named("likelihood_backward"))
    return {LikelihoodBackward{read_whole(launch, 0), launch.write(0, rows), scale}};
  if (launch.named("log_softmax_backward"))
    return {LogSoftmaxBackward{launch.read(0, rows), launch.read(1, rows), launch.write(0, rows)}};
  if (launch.named("token_loss_backward"))
    return {TokenLossBackward{launch.read(0, rows), read_whole(launch, 1), read_whole(launch, 2),
                              launch.write(0, rows), scale}};
  return {LossBackward{launch.read(0, rows), read_whole(launch, 1), launch.write(0, rows),
                       launch.bound.first_vocabulary_row, scale}};
}

}  // namespace rehearse
