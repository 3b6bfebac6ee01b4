// Kernels that look rows up: embeddings, the loss over the vocabulary, experts.
#pragma once

#include "kernels/tensor.h"

namespace rehearse::kernels {

// Row r of the output is the table's row tokens[r] - first. It is zero when this rank's part of the
// vocabulary does not contain the token (Shoeybi et al. 2019, section 3). tokens: int64, one row.
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

// Softmax cross-entropy of logits whose columns are split over ranks, from column `first` on. Ranks
// all-reduce between its parts: `maximum` by max, `target` and `sum` by sum. All tensors are fp32 except the
// labels (int64).
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
  Tensor logits, labels, maximum;  // without maximum: the logits are shifted
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

// Chooses the `choices.columns` highest scores of each row. `bias` is added for the choice only; ties go to
// the lower index. Weights are the softmax over the chosen scores, as in Mixtral.
//
// With `in_turn` the scores determine weights but not choices. The token at position p takes experts p k, p k
// + 1, .. p k + k - 1 modulo their number, with k = choices.columns. Over a whole number of rounds, all
// experts receive equally many tokens.
struct TopK {
  Tensor scores, bias;
  Tensor weights, choices;  // fp32, int32
  bool in_turn = false;
  Tokens tokens = {};               // in_turn: the tokens of these rows
  std::int64_t first_position = 0;  // added to their positions
};
struct TopKBackward {
  Tensor weight_gradient, scores, choices, score_gradient;
};

// counts[e] (fp32) += number of choices of expert e. Updates of a balancing bias use it.
struct CountChoices {
  Tensor choices, counts;
};

// place[c] (int32) of every choice, sorted by expert; choices of one expert keep their order.
struct SortChoices {
  Tensor choices, place;
  std::int64_t experts = 1;
};

// place of row r of block (s, e), when sources x experts blocks of `rows` rows are ordered by (e, s).
struct TransposeBlocks {
  Tensor place;
  std::int64_t sources = 1, experts = 1, rows = 1;
};

// output[place[c]] = input[c / copies]. `weights` (fp32, one a choice) are permuted the same way where given.
struct SpreadRows {
  Tensor input, weights, place, output, output_weights;
  std::int64_t copies = 1;
};

// output[t] = sum of input[place[c]] over the `copies` choices c of t: the inverse of SpreadRows.
struct CollectRows {
  Tensor input, weights, place, output, output_weights;
  std::int64_t copies = 1;
};

}  // namespace rehearse::kernels
