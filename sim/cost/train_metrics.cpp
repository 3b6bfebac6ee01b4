#include "cost/train_metrics.h"

#include <algorithm>

namespace rehearse {

double train_metrics_s(int metrics, const Block& block, KernelTimes& times) {
  constexpr double kFp32Bytes = 4, kReads = 3;  // bytes a logit, and log_softmax's passes over them
  if (metrics == 0) return 0;
  const auto logits = std::ranges::find(block.tensors, TensorUse::logits, &Tensor::use);
  if (logits == block.tensors.end()) return 0;
  const auto stream_s = [&](double bytes) {
    return times.pointwise(Pointwise::cross_entropy, bytes * logits->elements).seconds;
  };
  return metrics * (stream_s(logits->element_bytes + kFp32Bytes) + stream_s((kReads + 1) * kFp32Bytes));
}

}  // namespace rehearse
