// Embeddings, the loss over a split vocabulary, and the ways of rows to their experts.
#include <algorithm>

#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

TEST(Embedding, SplitOverTheVocabularySumsToTheWhole) {
  Matrix table = random_matrix(10, 6, 1), whole(5, 6), sum(5, 6), part(5, 6);
  std::vector<std::int64_t> tokens = {3, 9, 0, 3, 5};
  const Tensor of_tokens = vector_of(tokens, Type::int64);
  run_on_cpu({Embedding{of_tokens, table, whole, 0}});
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const Tensor shard(table.values.data() + rank * 30, Type::fp32, 5, 6);
    Add add;
    add.inputs = {sum, part};
    add.output = sum;
    run_on_cpu({Embedding{of_tokens, shard, part, rank * 5}, add}, 2);
  }
  expect_near(sum, whole, 0);
  EXPECT_EQ(whole.at(1, 2), table.at(9, 2));
}

TEST(Embedding, BackwardAddsUpEveryUseOfAToken) {
  Matrix dy = random_matrix(5, 6, 1), gradient(10, 6), upper(5, 6);
  std::vector<std::int64_t> tokens = {3, 9, 0, 3, 5};
  const Tensor of_tokens = vector_of(tokens, Type::int64);
  run_on_cpu({EmbeddingBackward{dy, of_tokens, gradient, 0}, EmbeddingBackward{dy, of_tokens, upper, 5}}, 2);
  EXPECT_FLOAT_EQ(gradient.at(3, 4), dy.at(0, 4) + dy.at(3, 4));
  EXPECT_EQ(gradient.at(1, 1), 0);
  for (std::int64_t r = 0; r < 5; ++r) EXPECT_EQ(upper.at(r, 3), gradient.at(r + 5, 3));
}

TEST(Positions, AddTheRowOfTheirPlace) {
  Matrix x = random_matrix(6, 4, 1), table = random_matrix(3, 4, 2), y(6, 4), gradient(3, 4);
  const Tokens tokens{2, 3, true, {}};
  run_on_cpu({Positions{tokens, x, table, y}, PositionsBackward{tokens, x, gradient}}, 2);
  EXPECT_FLOAT_EQ(y.at(5, 1), x.at(5, 1) + table.at(2, 1));
  EXPECT_FLOAT_EQ(gradient.at(1, 3), x.at(2, 3) + x.at(3, 3));
}

// The parts of one rank's vocabulary, and the numbers that ranks reduce.
struct VocabularyPart {
  VocabularyPart(Matrix& logits, std::int64_t begin, std::int64_t width)
      : first(begin),
        logits_here(Tensor(logits).slice(begin, width)),
        exponentials(logits.rows, width),
        probabilities(logits.rows, width),
        gradient(logits.rows, width),
        maximum(1, logits.rows),
        target(1, logits.rows),
        sum(1, logits.rows),
        loss(1, logits.rows) {}
  std::int64_t first;
  Tensor logits_here;
  Matrix exponentials, probabilities, gradient, maximum, target, sum, loss;
};

// The effect of the all-reduces between the parts.
void reduce(std::vector<VocabularyPart>& parts, Matrix VocabularyPart::*member, bool largest) {
  for (std::size_t i = 0; i < (parts[0].*member).values.size(); ++i) {
    float total = (parts[0].*member).values[i];
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const float more = (parts[p].*member).values[i];
      total = largest ? std::max(total, more) : total + more;
    }
    for (VocabularyPart& part : parts) (part.*member).values[i] = total;
  }
}

double cross_entropy(std::vector<VocabularyPart>& parts, const Tensor& labels, bool in_one = true) {
  for (VocabularyPart& part : parts) run_on_cpu({LossMaximum{part.logits_here, part.maximum}});
  reduce(parts, &VocabularyPart::maximum, true);
  for (VocabularyPart& part : parts) {
    const LossExponentials fused{part.logits_here, labels,   part.maximum, part.exponentials,
                                 part.target,      part.sum, part.first};
    LossExponentials apart = fused;
    apart.logits = part.gradient;  // not written yet
    apart.maximum = apart.sum = {};
    if (in_one)
      run_on_cpu({fused});
    else
      run_on_cpu({LossShift{part.logits_here, part.maximum, part.gradient}, apart,
                  LossSum{part.exponentials, part.sum}});
  }
  reduce(parts, &VocabularyPart::target, false);
  reduce(parts, &VocabularyPart::sum, false);
  for (VocabularyPart& part : parts) {
    run_on_cpu({Loss{part.exponentials, part.target, part.sum, part.probabilities, part.loss},
                LossBackward{part.probabilities, labels, part.gradient, part.first, 1}},
               2);
  }
  double total = 0;
  for (const float loss : parts[0].loss.values) total += double{loss};
  return total;
}

TEST(Loss, OfASplitVocabularyEqualsTheWholeAndItsBackwardIsTheDerivative) {
  Matrix logits = random_matrix(4, 12, 1);
  for (float& value : logits.values) value *= 10;
  std::vector<std::int64_t> labels = {0, 11, 5, 7};
  const Tensor of_labels = vector_of(labels, Type::int64);
  std::vector<VocabularyPart> whole = {{logits, 0, 12}},
                              split = {{logits, 0, 5}, {logits, 5, 4}, {logits, 9, 3}};
  const double loss = cross_entropy(whole, of_labels);
  EXPECT_NEAR(cross_entropy(split, of_labels, false), loss, 1e-5 * loss);
  EXPECT_NEAR(cross_entropy(split, of_labels), loss, 1e-5 * loss);
  for (std::int64_t r = 0; r < 4; ++r) {
    EXPECT_NEAR(split[1].gradient.at(r, 2), whole[0].gradient.at(r, 7), 1e-6);
  }
  const Matrix gradient = whole[0].gradient;
  expect_gradient(logits.values, gradient.values, [&] { return cross_entropy(whole, of_labels); });
}

TEST(Loss, OfEqualLogitsIsTheLogarithmOfTheVocabulary) {
  Matrix logits(1, 1000);
  logits.values.assign(1000, 42);
  std::vector<std::int64_t> labels = {17};
  std::vector<VocabularyPart> whole = {{logits, 0, 1000}};
  EXPECT_NEAR(cross_entropy(whole, vector_of(labels, Type::int64)), std::log(1000), 1e-5);
}

// Losses of a whole vocabulary, against those of parts put together.
struct TokenLosses {
  explicit TokenLosses(Matrix& of)
      : logits(of),
        log_probabilities(of.rows, of.columns),
        likelihood_gradient(of.rows, of.columns),
        gradient(of.rows, of.columns),
        log_sum(1, of.rows),
        loss(1, of.rows) {}
  double operation_by_operation(const Tensor& labels) {
    run_on_cpu({LogSoftmax{logits, labels, log_probabilities, loss},
                LikelihoodBackward{labels, likelihood_gradient, 1},
                LogSoftmaxBackward{likelihood_gradient, log_probabilities, gradient}});
    return std::accumulate(loss.values.begin(), loss.values.end(), 0.0);
  }
  double in_one_pass(const Tensor& labels) {
    run_on_cpu(
        {TokenLoss{logits, labels, log_sum, loss}, TokenLossBackward{logits, labels, log_sum, gradient, 1}});
    return std::accumulate(loss.values.begin(), loss.values.end(), 0.0);
  }
  Matrix& logits;
  Matrix log_probabilities, likelihood_gradient, gradient, log_sum, loss;
};

TEST(TokenLoss, EqualsThatOfASplitVocabularyAndItsBackwardIsTheDerivative) {
  Matrix logits = random_matrix(4, 12, 1);
  for (float& value : logits.values) value *= 10;
  std::vector<std::int64_t> labels = {0, 11, 5, 7};
  const Tensor of_labels = vector_of(labels, Type::int64);
  std::vector<VocabularyPart> split = {{logits, 0, 5}, {logits, 5, 7}};
  const double expected = cross_entropy(split, of_labels);
  TokenLosses whole(logits);
  EXPECT_NEAR(whole.operation_by_operation(of_labels), expected, 1e-5 * expected);
  const Matrix apart = whole.gradient;
  EXPECT_NEAR(whole.in_one_pass(of_labels), expected, 1e-5 * expected);
  const Matrix at_once = whole.gradient;
  expect_gradient(logits.values, apart.values, [&] { return whole.operation_by_operation(of_labels); });
  expect_gradient(logits.values, at_once.values, [&] { return whole.in_one_pass(of_labels); });
}

TEST(TopK, ChoosesTheBestAndItsBackwardIsTheDerivative) {
  Matrix scores(3, 8), weights(3, 2), direction = random_matrix(3, 2, 2), gradient(3, 8);
  for (std::size_t i = 0; i < 24; ++i) scores.values[i] = 0.3F * static_cast<float>(i * 5 % 8);  // far apart
  std::vector<std::int32_t> choices(6);
  const Tensor of_choices(choices.data(), Type::int32, 3, 2);
  const auto loss = [&] {
    run_on_cpu({TopK{scores, {}, weights, of_choices}});
    return dot(weights, direction);
  };
  loss();
  for (std::int64_t r = 0; r < 3; ++r) {
    std::vector<float> sorted(scores.values.begin() + r * 8, scores.values.begin() + r * 8 + 8);
    std::sort(sorted.rbegin(), sorted.rend());
    EXPECT_EQ(scores.at(r, choices[static_cast<std::size_t>(r) * 2]), sorted[0]);
    EXPECT_EQ(scores.at(r, choices[static_cast<std::size_t>(r) * 2 + 1]), sorted[1]);
    EXPECT_NEAR(weights.at(r, 0) / weights.at(r, 1), std::exp(sorted[0] - sorted[1]), 1e-4);
  }
  run_on_cpu({TopKBackward{direction, scores, of_choices, gradient}});
  expect_gradient(scores.values, gradient.values, loss);
}

TEST(TopK, BiasMovesTheChoiceButNotTheWeight) {
  Matrix scores(1, 3), bias(1, 3), weights(1, 2);
  scores.values = {3, 2, 1};
  bias.values = {0, 0, 5};
  std::vector<std::int32_t> choices(2);
  run_on_cpu({TopK{scores, bias, weights, {choices.data(), Type::int32, 1, 2}}});
  EXPECT_EQ(choices, (std::vector<std::int32_t>{2, 0}));
  EXPECT_NEAR(weights.at(0, 1) / weights.at(0, 0), std::exp(2.0), 1e-4);
}

TEST(TopK, InTurnVisitsAllExpertsEquallyOftenWhateverTheScores) {
  Matrix scores = random_matrix(8, 8, 1), weights(8, 2), direction = random_matrix(8, 2, 2), gradient(8, 8);
  std::vector<std::int32_t> choices(16), positions = {4, 5, 10, 11};
  const Tensor of_choices(choices.data(), Type::int32, 8, 2);
  const Tokens tokens{2, 4, true, vector_of(positions, Type::int32)};
  const auto loss = [&] {
    run_on_cpu({TopK{scores, {}, weights, of_choices, true, tokens}});
    return dot(weights, direction);
  };
  loss();
  EXPECT_EQ(choices, (std::vector<std::int32_t>{0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7}));
  EXPECT_NEAR(weights.at(3, 0) / weights.at(3, 1), std::exp(scores.at(3, 2) - scores.at(3, 3)), 1e-4);
  run_on_cpu({TopKBackward{direction, scores, of_choices, gradient}});
  expect_gradient(scores.values, gradient.values, loss);
}

TEST(TopK, InTurnCountsFromTheFirstPosition) {
  Matrix scores = random_matrix(3, 5, 1), weights(3, 2);
  std::vector<std::int32_t> choices(6);
  run_on_cpu({TopK{scores, {}, weights, {choices.data(), Type::int32, 3, 2}, true, {1, 3, false, {}}, 7}});
  EXPECT_EQ(choices, (std::vector<std::int32_t>{4, 0, 1, 2, 3, 4}));  // 14, 15, .. modulo 5
}

TEST(SpreadRows, GroupsByExpertAndCollectRowsBringsThemHome) {
  std::vector<std::int32_t> choices = {2, 0, 1, 2, 0, 1}, place(6);
  Matrix rows = random_matrix(3, 4, 1), spread(6, 4), home(3, 4), weights = random_matrix(1, 6, 2);
  Matrix moved(1, 6), back(1, 6);
  const Tensor of_place = vector_of(place, Type::int32);
  run_on_cpu({SortChoices{{choices.data(), Type::int32, 3, 2}, of_place, 3},
              SpreadRows{rows, weights, of_place, spread, moved, 2},
              CollectRows{spread, moved, of_place, home, back, 2}},
             2);
  EXPECT_EQ(place, (std::vector<std::int32_t>{4, 0, 2, 5, 1, 3}));
  EXPECT_EQ(spread.at(0, 1), rows.at(0, 1));  // expert 0: token 0, then token 2
  EXPECT_EQ(spread.at(1, 1), rows.at(2, 1));
  EXPECT_FLOAT_EQ(home.at(1, 3), 2 * rows.at(1, 3));
  expect_near(back, weights, 0);
}

TEST(TransposeBlocks, OrdersBySourceThenByExpertAndBack) {
  std::vector<std::int32_t> there(12), back(12);
  run_on_cpu({TransposeBlocks{vector_of(there, Type::int32), 3, 2, 2},
              TransposeBlocks{vector_of(back, Type::int32), 2, 3, 2}});
  EXPECT_EQ(there[2], 6);  // source 0, expert 1: after the three sources of expert 0
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(back[static_cast<std::size_t>(there[i])], static_cast<std::int32_t>(i));
  }
}

TEST(CountChoices, AddsUpWhatEachExpertReceived) {
  std::vector<std::int32_t> choices = {2, 0, 2, 2};
  Matrix counts(1, 3);
  run_on_cpu({CountChoices{vector_of(choices, Type::int32), counts}});
  EXPECT_EQ(counts.values, (std::vector<float>{1, 0, 3}));
}

}  // namespace
}  // namespace rehearse::kernels
