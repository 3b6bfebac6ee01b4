#include "schedule/parse.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <vector>

namespace rehearse {

namespace {

constexpr int kMaxStage = std::numeric_limits<decltype(Op::stage)>::max() - 1;
constexpr int kMaxPart = std::numeric_limits<decltype(Op::parts)>::max();
constexpr int kMaxMicrobatch = std::numeric_limits<std::int32_t>::max() - 1;

// Takes the digits at the front of `rest`.
std::optional<int> take_number(std::string_view& rest, int largest) {
  int value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc{} || value < 0 || value > largest || rest.front() == '-') return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return value;
}

std::string_view take_word(std::string_view& rest) {
  const std::size_t size = std::min(rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), rest.size());
  const std::string_view word = rest.substr(0, size);
  rest.remove_prefix(size);
  return word;
}

bool take(std::string_view& rest, char expected) {
  if (rest.empty() || rest.front() != expected) return false;
  rest.remove_prefix(1);
  return true;
}

OpKind kind_named(std::string_view word, std::string_view token, const TokenPlace& place) {
  std::vector<std::string> names;
  for (int k = 0; k < kOpKinds; ++k) {
    names.push_back(to_string(static_cast<OpKind>(k)));
    if (names.back() == word) return static_cast<OpKind>(k);
  }
  const std::string nearest = nearest_name(std::string(word), names);
  reject_token(place, "an action's type is one of " + join(names), token, nearest);
}

void take_parts(std::string_view& rest, Op& op, std::string_view token, const TokenPlace& place) {
  const std::optional<int> part = take_number(rest, kMaxPart);
  const std::optional<int> parts = take(rest, '/') ? take_number(rest, kMaxPart) : std::nullopt;
  if (!part || !parts || *part >= *parts)
    reject_token(place, "a part is written .<part>/<parts>, with part below parts", token);
  op.part = static_cast<std::uint16_t>(*part);
  op.parts = static_cast<std::uint16_t>(*parts);
}

void take_stream(std::string_view& rest, Op& op, std::string_view token, const TokenPlace& place) {
  std::vector<std::string> names;
  for (int s = 0; s < kStreams; ++s) {
    names.push_back(to_string(static_cast<Stream>(s)));
    if (rest != names.back()) continue;
    op.stream = static_cast<Stream>(s);
    rest = {};
    return;
  }
  reject_token(place, "a stream is one of " + join(names), token, nearest_name(std::string(rest), names));
}

template <class Values>
void require_no_gaps(const Values& values, const char* what, const std::string& file) {
  int expected = 0;
  for (const int value : values) {
    if (value != expected)
      throw InputError(Violation{file,
                                 {},
                                 fmt::format("{}s are numbered from 0 without gaps", what),
                                 fmt::format("{} {} is missing, {} exists", what, expected, value),
                                 {}});
    ++expected;
  }
}

}  // namespace

void reject_token(const TokenPlace& place, std::string rule, std::string_view token, std::string nearest) {
  throw InputError(Violation{place.file, place.pointer, std::move(rule), fmt::format("found \"{}\"", token),
                             std::move(nearest)});
}

Op parse_op(std::string_view token, const TokenPlace& place, bool extended) {
  std::string_view rest = token;
  const std::optional<int> stage = take_number(rest, kMaxStage);
  if (!stage) reject_token(place, fmt::format("an action begins with its stage, 0 to {}", kMaxStage), token);
  const OpKind kind = kind_named(take_word(rest), token, place);
  Op op = make_op(kind, *stage);
  if (has_microbatch(kind)) {
    const std::optional<int> microbatch = take_number(rest, kMaxMicrobatch);
    if (!microbatch) reject_token(place, to_string(kind) + " is followed by its microbatch", token);
    op.microbatch = *microbatch;
  }
  if (extended && take(rest, '.')) take_parts(rest, op, token, place);
  if (extended && take(rest, '@')) take_stream(rest, op, token, place);
  if (!rest.empty()) reject_token(place, "nothing may follow an action", token, to_string(op));
  return op;
}

void set_size(Schedule& schedule, const std::string& file) {
  std::set<int> stages, microbatches;
  for (const RankOps& ops : schedule.ranks)
    for (const Op& op : ops.ops()) {
      stages.insert(op.stage);
      microbatches.insert(op.microbatch);
    }
  if (stages.empty()) throw InputError(Violation{file, {}, "a schedule has at least one action", {}, {}});
  require_no_gaps(stages, "stage", file);
  require_no_gaps(microbatches, "microbatch", file);
  schedule.pp = static_cast<int>(schedule.ranks.size());
  schedule.stages = static_cast<int>(stages.size());
  schedule.microbatches = static_cast<int>(microbatches.size());
}

}  // namespace rehearse
