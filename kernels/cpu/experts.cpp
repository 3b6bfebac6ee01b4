#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

// The expert with the highest score that is not among the first `taken` choices.
std::int32_t best_left(const float* scores, const float* bias, std::int64_t experts,
                       const std::int32_t* choices, std::int64_t taken) {
  std::int32_t best = -1;
  float highest = 0;
  for (std::int32_t expert = 0; expert < experts; ++expert) {
    if (std::find(choices, choices + taken, expert) != choices + taken) continue;
    const float score = scores[expert] + (bias == nullptr ? 0.0F : bias[expert]);
    if (best < 0 || score > highest) {
      best = expert;
      highest = score;
    }
  }
  return best;
}

void choose_best(const TopK& call, const float* scores, std::int32_t* choices) {
  for (std::int64_t k = 0; k < call.choices.columns; ++k)
    choices[k] = best_left(scores, data(call.bias), call.scores.columns, choices, k);
}

void choose_in_turn(const TopK& call, std::int64_t row, std::int32_t* choices) {
  const std::int64_t place = place_of_row(call.tokens, row), count = call.choices.columns;
  const std::int64_t position = call.first_position + position_of_place(call.tokens, place);
  for (std::int64_t k = 0; k < count; ++k)
    choices[k] = static_cast<std::int32_t>((position * count + k) % call.scores.columns);
}

// weights[k] = softmax over the chosen scores.
void chosen_softmax(const float* scores, const std::int32_t* choices, std::int64_t count, float* weights) {
  float largest = scores[choices[0]];
  for (std::int64_t k = 1; k < count; ++k) largest = std::max(largest, scores[choices[k]]);
  float sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += weights[k] = std::exp(scores[choices[k]] - largest);
  for (std::int64_t k = 0; k < count; ++k) weights[k] /= sum;
}

}  // namespace

void run(const TopK& call) {
  const std::int64_t count = call.choices.columns;
  require(count <= call.scores.columns, "a row cannot choose more experts than there are");
  for_each(call.scores.rows, [&](std::int64_t r) {
    const float* scores = row(call.scores, r);
    std::int32_t* choices = row<std::int32_t>(call.choices, r);
    if (call.in_turn) {
      choose_in_turn(call, r, choices);
    } else {
      choose_best(call, scores, choices);
    }
    chosen_softmax(scores, choices, count, row(call.weights, r));
  });
}

void run(const TopKBackward& call) {
  constexpr std::int64_t kMaxChoices = 64;
  const std::int64_t count = call.choices.columns;
  require(count <= kMaxChoices, "a row chooses at most 64 experts");
  for_each(call.score_gradient.rows, [&](std::int64_t r) {
    std::array<float, kMaxChoices> weights;
    const float* gradient = row(call.weight_gradient, r);
    const std::int32_t* choices = row<std::int32_t>(call.choices, r);
    float* out = row(call.score_gradient, r);
    chosen_softmax(row(call.scores, r), choices, count, weights.data());
    std::fill_n(out, call.score_gradient.columns, 0.0F);
    float dot = 0;
    for (std::int64_t k = 0; k < count; ++k) dot += weights[static_cast<std::size_t>(k)] * gradient[k];
    for (std::int64_t k = 0; k < count; ++k) {
      out[choices[k]] = weights[static_cast<std::size_t>(k)] * (gradient[k] - dot);
    }
  });
}

void run(const CountChoices& call) {
  const std::int32_t* choices = data<std::int32_t>(call.choices);
  for (std::int64_t c = 0; c < call.choices.elements(); ++c) data(call.counts)[choices[c]] += 1;
}

void run(const TransposeBlocks& call) {
  std::int32_t* place = data<std::int32_t>(call.place);
  for_each(call.sources * call.experts, [&](std::int64_t block) {
    const std::int64_t to = block % call.experts * call.sources + block / call.experts;
    for (std::int64_t r = 0; r < call.rows; ++r) {
      place[block * call.rows + r] = static_cast<std::int32_t>(to * call.rows + r);
    }
  });
}

// Counting sort: it keeps the order within an expert.
void run(const SortChoices& call) {
  constexpr std::int64_t kMaxExperts = 4096;
  require(call.experts <= kMaxExperts && call.choices.contiguous(), "at most 4096 experts can be sorted");
  std::array<std::int32_t, kMaxExperts + 1> next{};
  const std::int32_t* choices = data<std::int32_t>(call.choices);
  std::int32_t* place = data<std::int32_t>(call.place);
  for (std::int64_t c = 0; c < call.choices.elements(); ++c) ++next[static_cast<std::size_t>(choices[c]) + 1];
  for (std::size_t e = 1; e < next.size(); ++e) next[e] += next[e - 1];
  for (std::int64_t c = 0; c < call.choices.elements(); ++c) {
    place[c] = next[static_cast<std::size_t>(choices[c])]++;
  }
}

void run(const SpreadRows& call) {
  const std::int32_t* place = data<std::int32_t>(call.place);
  for_each(call.place.elements(), [&](std::int64_t c) {
    std::copy_n(row(call.input, c / call.copies), call.input.columns, row(call.output, place[c]));
    if (call.weights.given()) data(call.output_weights)[place[c]] = data(call.weights)[c];
  });
}

void run(const CollectRows& call) {
  const std::int32_t* place = data<std::int32_t>(call.place);
  for_each(call.output.rows, [&](std::int64_t t) {
    float* out = row(call.output, t);
    std::fill_n(out, call.output.columns, 0.0F);
    for (std::int64_t c = t * call.copies; c < (t + 1) * call.copies; ++c) {
      const float* in = row(call.input, place[c]);
      for (std::int64_t j = 0; j < call.output.columns; ++j) out[j] += in[j];
      if (call.weights.given()) data(call.output_weights)[c] = data(call.weights)[place[c]];
    }
  });
}

}  // namespace rehearse::kernels::cpu
