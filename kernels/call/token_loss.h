// The loss of logits that one rank holds completely, as PyTorch computes it: operation by operation, or in
// one pass.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// labels: int64, one row, each a column of the logits. Losses and sums: fp32, one a row.
struct LogSoftmax {
  Tensor logits, labels;           // fp32
  Tensor log_probabilities, loss;  // fp32; loss = -log probability of the label
};
struct LikelihoodBackward {
  Tensor labels, gradient;  // fp32: -scale at the label, else 0
  float scale = 1;
};
struct LogSoftmaxBackward {
  Tensor gradient, log_probabilities, logit_gradient;  // fp32: g - probability x (sum of g over the row)
};

// The logits may have any type, and so may their gradient: (probability - 1 at the label) scale.
struct TokenLoss {
  Tensor logits, labels;
  Tensor log_sum, loss;  // log of the row's sum of exponentials; loss = log_sum - label's logit
};
struct TokenLossBackward {
  Tensor logits, labels, log_sum, logit_gradient;
  float scale = 1;
};

}  // namespace rehearse::kernels
