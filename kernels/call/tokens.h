// Kernels that look rows up: embeddings, the loss over the vocabulary, experts.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// Row r of the output is the table's row tokens[r] - first, or zero when this rank's part of the vocabulary
// does not hold it (Shoeybi et al. 2019, section 3). tokens: int64, one row.
struct Embedding {
  Tensor tokens, table, output;
  std::int64_t first = 0;
};
struct EmbeddingBackward {
  Tensor output_gradient, tokens, table_gradient;
  std::int64_t first = 0;
};

// output = input + the table's row of each token's position.
struct Positions {
  Tokens tokens;
  Tensor input, table, output;
};
struct PositionsBackward {
  Tokens tokens;
  Tensor output_gradient, table_gradient;
};

// Softmax cross-entropy of logits whose columns are split over ranks, from column `first` on. Between its
// parts the ranks reduce: maximum by max, target and sum by sum. All of them fp32 but the labels (int64).
struct LossMaximum {
  Tensor logits, maximum;
};
struct LossShift {
  Tensor logits, maximum, shifted;  // logit - maximum
};
struct LossSum {
  Tensor exponentials, sum;  // row sums
};
struct LossExponentials {
  Tensor logits, labels, maximum;  // no maximum: the logits are shifted
  Tensor exponentials, target;     // exp(logit - maximum), (target's logit - maximum) or 0
  Tensor sum;                      // of a row, if given
  std::int64_t first = 0;
};
struct Loss {
  Tensor exponentials, target, sum;
  Tensor probabilities, loss;  // loss = log(sum) - target
};
struct LossBackward {
  Tensor probabilities, labels, logit_gradient;  // (probability - 1 at the label) scale
  std::int64_t first = 0;
  float scale = 1;
};

// The `choices.columns` best of each row's scores (plus bias, for the choice only), the lower index where
// they tie; their weights are the softmax over the chosen scores, as in Mixtral. With `in_turn` the scores
// weigh but do not choose: the token at position p takes experts p k, p k + 1, .. p k + k - 1 modulo their
// number, k = choices.columns, so that all receive equally many of a whole number of rounds.
struct TopK {
  Tensor scores, bias;
  Tensor weights, choices;  // fp32, int32
  bool in_turn = false;
  Tokens tokens = {};               // in turn: whose rows these are
  std::int64_t first_position = 0;  // added to their positions
};
struct TopKBackward {
  Tensor weight_gradient, scores, choices, score_gradient;
};

// counts[e] (fp32) += how many choices fell on expert e: what a balancing bias moves by.
struct CountChoices {
  Tensor choices, counts;
};

// place[c] (int32) of every choice in the order of the experts, choices of one expert in their own order.
struct SortChoices {
  Tensor choices, place;
  std::int64_t experts = 1;
};

// place of row r of block (s, e) among sources x experts blocks of `rows` rows in the order (e, s).
struct TransposeBlocks {
  Tensor place;
  std::int64_t sources = 1, experts = 1, rows = 1;
};

// output[place[c]] = input[c / copies]; `weights` (fp32, one a choice) travel along where given.
struct SpreadRows {
  Tensor input, weights, place, output, output_weights;
  std::int64_t copies = 1;
};

// output[t] = sum of input[place[c]] over the `copies` choices c of t: what undoes SpreadRows.
struct CollectRows {
  Tensor input, weights, place, output, output_weights;
  std::int64_t copies = 1;
};

}  // namespace rehearse::kernels
