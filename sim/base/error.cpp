#include "base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "base/utf8.h"

namespace rehearse {

namespace {

std::string all_of(const std::vector<Violation>& violations) {
  std::vector<std::string> lines;
  for (const Violation& violation : violations) lines.push_back(to_string(violation));
  return join(lines, "\n");
}

// Of no interest where it is `bound` or more, which is then the answer.
std::size_t edit_distance(const std::string& a, const std::string& b, std::size_t bound) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= bound) return bound;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
    if (*std::min_element(row.begin(), row.end()) >= bound) return bound;
  }
  return row.back();
}

// Control characters of one byte or two would steer a terminal.
bool steers(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  return character.size() == 2 && byte(0) == 0xc2 && byte(1) < 0xa0;
}

// Inputs are quoted in messages, whatever they hold: the middle of a long text is left out, and bytes that
// are no character are written as \xNN.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 1600, kEnds = 700;
  if (text.size() > kMost)
    return fmt::format("{} ... {}", shown(text.substr(0, kEnds)), shown(text.substr(text.size() - kEnds)));
  std::string plain;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, utf8_size(text)));
    const bool plainly = utf8_size(text) > 0 && !steers(character);
    for (const char byte : character)
      plain += plainly ? std::string(1, byte) : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(character.size());
  }
  return plain;
}

}  // namespace

std::string to_string(const Violation& violation) {
  std::string text;
  if (!violation.file.empty()) text += shown(violation.file) + ": ";
  if (!violation.pointer.empty()) text += shown(violation.pointer) + ": ";
  text += shown(violation.rule);
  if (!violation.values.empty()) text += fmt::format(" ({})", shown(violation.values));
  if (!violation.nearest.empty()) text += fmt::format("; nearest legal: {}", shown(violation.nearest));
  return text;
}

InputError::InputError(Violation violation) : InputError(std::vector<Violation>{std::move(violation)}) {}

InputError::InputError(std::vector<Violation> violations)
    : std::runtime_error(all_of(violations)), violations_(std::move(violations)) {}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestName = 1000;  // an input may put a whole file in a name's place
  if (name.size() > kLongestName) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate, best_distance);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

}  // namespace rehearse
