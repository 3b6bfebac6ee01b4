// Attention without scores in memory (Dao et al. 2022), and the softmax of attention that keeps them.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// Rows of `queries` hold heads x head_dim query columns. Rows of `keys` hold kv_heads x head_dim key and
// kv_heads x v_head_dim value columns. heads / kv_heads neighbouring query heads share a key head.
struct AttentionShape {
  Tokens queries, keys;
  std::int64_t heads = 1, kv_heads = 1, head_dim = 0, v_head_dim = 0;
  bool causal = true;       // a query sees keys up to its own position
  std::int64_t window = 0;  // and at most this many of them, its own included; 0: all
  float scale = 1;          // of the scores, usually 1 / sqrt(head_dim)
};

// output = softmax(scale query key^T) value. log_sum_exp is the logarithm of each row's sum of exponentials
// (rows x heads, fp32). A query that sees no key has output 0 and log-sum-exp -infinity.
struct AttentionForward {
  AttentionShape shape;
  Tensor query, key, value, output, log_sum_exp;
};

// `output` and `log_sum_exp` come from the forward pass over all keys. Gradients of partial keys add up.
struct AttentionBackward {
  AttentionShape shape;
  Tensor output_gradient, query, key, value, output, log_sum_exp;
  Tensor query_gradient, key_gradient, value_gradient;
};

// Merges attention over other keys into `output` and `log_sum_exp` (ring attention, Liu et al. 2023).
struct AttentionMerge {
  std::int64_t heads = 1;
  Tensor part, part_log_sum_exp, output, log_sum_exp;
};

// probabilities = softmax(scale scores) by row. With `causal`, row r belongs to query q = (r % period) /
// repeat and sees q + 1 keys.
struct Softmax {
  Tensor scores, probabilities;
  float scale = 1;
  bool causal = false;
  std::int64_t period = 1, repeat = 1;
};

struct SoftmaxBackward {
  Tensor probability_gradient, probabilities, score_gradient;
  float scale = 1;
};

}  // namespace rehearse::kernels
