#include "sweep/values.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxValues = 100'000;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void reject(const std::string& field, std::string rule, std::string_view found,
                         std::string nearest = {}) {
  throw InputError(
      {"command line", field, std::move(rule), fmt::format("found \"{}\"", found), std::move(nearest)});
}

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(static_cast<double>(number))) return std::nullopt;
  return number;
}

template <typename Number>
struct Range {
  Number from = 0, to = 0, step = 1;
  bool multiplies = false;
};

template <typename Number>
std::optional<Range<Number>> parse_range(const std::vector<std::string_view>& parts) {
  const auto from = parse<Number>(parts[0]), to = parse<Number>(parts[1]);
  if (!from || !to) return std::nullopt;
  if (parts.size() == 2) return Range<Number>{*from, *to, 1, false};
  if (parts[2].empty() || (parts[2][0] != '+' && parts[2][0] != '*')) return std::nullopt;
  const auto step = parse<Number>(parts[2].substr(1));
  if (!step) return std::nullopt;
  return Range<Number>{*from, *to, *step, parts[2][0] == '*'};
}

template <typename Number>
bool is_endless(const Range<Number>& range) {
  return range.multiplies ? !(range.step > 1) || !(range.from > 0) : !(range.step > 0);
}

void append(const Range<std::int64_t>& range, std::vector<std::string>& values) {
  for (std::int64_t value = range.from; value <= range.to && values.size() <= kMaxValues;) {
    values.push_back(std::to_string(value));
    // The distance of two 64-bit numbers needs the sign bit too.
    const std::uint64_t left = range.multiplies
                                   ? static_cast<std::uint64_t>(range.to / value)
                                   : static_cast<std::uint64_t>(range.to) - static_cast<std::uint64_t>(value);
    if (left < static_cast<std::uint64_t>(range.step)) break;
    value = range.multiplies ? value * range.step : value + range.step;
  }
}

// Computes each value from its index, so that rounding errors do not accumulate.
void append(const Range<double>& range, std::vector<std::string>& values) {
  const double last = range.to + 1e-9 * std::abs(range.to);
  for (int i = 0; values.size() <= kMaxValues; ++i) {
    const double value =
        range.multiplies ? range.from * std::pow(range.step, i) : range.from + i * range.step;
    if (!(value <= last)) return;
    values.push_back(fmt::format("{:.12g}", value));
  }
}

template <typename Number>
bool append_range(const std::string& field, std::string_view item, const std::vector<std::string_view>& parts,
                  std::vector<std::string>& values) {
  const auto range = parse_range<Number>(parts);
  if (!range) return false;
  if (is_endless(*range)) reject(field, "the range has no end", item, "2:32:*2 or 256:1024:+256");
  if (range->to < range->from) reject(field, "the range runs backwards", item, "2:32:*2 or 256:1024:+256");
  append(*range, values);
  if (values.size() > kMaxValues)
    reject(field, fmt::format("a field takes at most {} values", kMaxValues), item);
  return true;
}

void append_item(const std::string& field, std::string_view item, std::vector<std::string>& values) {
  const std::vector<std::string_view> parts = split(item, ':');
  const bool may_be_range = parts.size() == 2 || parts.size() == 3;
  if (may_be_range && append_range<std::int64_t>(field, item, parts, values)) return;
  if (may_be_range && append_range<double>(field, item, parts, values)) return;
  if (parts.size() == 3 && parse<double>(parts[0]) && parse<double>(parts[1]) && parse<double>(parts[2]))
    reject(field, "the step of a range begins with + or *", item,
           fmt::format("{0}:{1}:+{2}", parts[0], parts[1], parts[2]) +
               (*parse<double>(parts[2]) > 1 ? fmt::format(", or {0}:{1}:*{2}", parts[0], parts[1], parts[2])
                                             : ""));
  values.emplace_back(item);
}

}  // namespace

std::vector<std::string> parse_values(const std::string& field, const std::string& text, bool holds_commas) {
  std::vector<std::string> values;
  for (const std::string_view item : split(text, holds_commas ? ';' : ',')) {
    if (item.empty()) reject(field, "a list has an empty item", text);
    holds_commas ? (void)values.emplace_back(item) : append_item(field, item, values);
  }
  std::unordered_set<std::string_view> seen;
  for (const std::string& value : values)
    if (!seen.insert(value).second) reject(field, fmt::format("{} is in the list twice", value), text);
  return values;
}

}  // namespace rehearse
