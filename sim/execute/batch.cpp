#include "execute/batch.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/text_file.h"
#include "kernels/philox.h"

namespace rehearse {

namespace {

constexpr std::int64_t kByteValues = 256;

// Tokens of one sequence and the token after it. `sequence` counts all sequences of this run.
std::vector<std::int64_t> made_tokens(const Training& training, std::int64_t sequence) {
  constexpr std::int64_t kChoices = 4, kFactor = 5, kOffset = 17;
  const std::int64_t length = tokens_of_sequence(training.model, training.plan);
  const auto draw = [&](std::int64_t place) {
    const auto index = static_cast<std::uint64_t>(sequence * length + place);
    return static_cast<std::int64_t>(kernels::philox(training.seed, index));
  };
  std::vector<std::int64_t> tokens = {draw(0) % training.model.vocab};
  while (static_cast<std::int64_t>(tokens.size()) < length)
    tokens.push_back(
        (kFactor * tokens.back() + kOffset + draw(static_cast<std::int64_t>(tokens.size())) % kChoices) %
        training.model.vocab);
  return tokens;
}

std::vector<std::int64_t> text_tokens(const Training& training, std::int64_t sequence) {
  const auto length = static_cast<std::size_t>(tokens_of_sequence(training.model, training.plan));
  const auto index = 2 * static_cast<std::uint64_t>(sequence);
  const std::uint64_t draw =
      std::uint64_t{kernels::philox(training.seed, index)} << 32 | kernels::philox(training.seed, index + 1);
  const std::size_t first = draw % (training.text.size() - length + 1);
  std::vector<std::int64_t> tokens;
  for (std::size_t i = first; i < first + length; ++i)
    tokens.push_back(static_cast<unsigned char>(training.text[i]));
  return tokens;
}

}  // namespace

std::int64_t tokens_of_sequence(const Model& model, const Plan& plan) {
  return plan.seq + model.mtp_layers + 1;
}

std::vector<std::int64_t> places_of_rank(const Plan& plan, int context_rank) {
  std::vector<std::int64_t> places;
  if (plan.cp == 1) {
    places.resize(static_cast<std::size_t>(plan.seq));
    std::iota(places.begin(), places.end(), 0);
    return places;
  }
  const std::int64_t length = plan.seq / (2 * plan.cp);
  for (const std::int64_t chunk : {context_rank, 2 * plan.cp - 1 - context_rank})
    for (std::int64_t i = 0; i < length; ++i) places.push_back(chunk * length + i);
  return places;
}

std::int64_t first_sequence(const Plan& plan, int replica, int microbatch) {
  return (std::int64_t{microbatch} * plan.dp + replica) * plan.micro_batch;
}

Batch make_batch(const Training& training, std::int64_t step, int replica, int context_rank, int microbatch,
                 std::int64_t ahead) {
  const Plan& plan = training.plan;
  const std::int64_t sequences = plan.micro_batch;
  const std::vector<std::int64_t> places = places_of_rank(plan, context_rank);
  Batch batch;
  batch.tokens.resize(static_cast<std::size_t>(sequences) * places.size());
  batch.labels.resize(batch.tokens.size());
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t sequence = step * plan.global_batch + first_sequence(plan, replica, microbatch) + s;
    const std::vector<std::int64_t> tokens =
        training.text.empty() ? made_tokens(training, sequence) : text_tokens(training, sequence);
    auto row = static_cast<std::size_t>(s);
    for (const std::int64_t place : places) {
      batch.tokens[row] = tokens[static_cast<std::size_t>(place + ahead)];
      batch.labels[row] = tokens[static_cast<std::size_t>(place + ahead) + 1];
      row += static_cast<std::size_t>(sequences);
    }
  }
  return batch;
}

std::string read_text(const std::string& path, std::int64_t vocab, std::int64_t tokens) {
  const std::string text = read_text_file(path);
  if (static_cast<std::int64_t>(text.size()) < tokens)
    throw InputError({path, "", "the text must have one more byte than a sequence",
                      fmt::format("{} bytes, of a sequence = {}", text.size(), tokens),
                      fmt::format("{} bytes or more, or a smaller seq", tokens)});
  const auto beyond =
      std::ranges::find_if(text, [&](char letter) { return static_cast<unsigned char>(letter) >= vocab; });
  if (beyond != text.end())
    throw InputError(
        {path, "", "every byte of the text is a token",
         fmt::format("byte {} is {}, vocabulary = {}", beyond - text.begin(),
                     int{static_cast<unsigned char>(*beyond)}, vocab),
         fmt::format("a model with a vocabulary of {} or more, or a text of smaller bytes", kByteValues)});
  return text;
}

}  // namespace rehearse
