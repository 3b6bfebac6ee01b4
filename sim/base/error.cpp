#include "base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
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

// A lower bound of the edit distance: the letters that one text has and the other lacks, in the larger
// direction. Each needs an edit of its own. Letters with equal last five bits count as one.
std::size_t least_edits(const std::string& a, const std::string& b) {
  std::array<int, 32> surplus{};
  for (const char letter : a) ++surplus[static_cast<unsigned char>(letter) % surplus.size()];
  for (const char letter : b) --surplus[static_cast<unsigned char>(letter) % surplus.size()];
  std::size_t lacking = 0, beyond = 0;
  for (const int letters : surplus)
    (letters > 0 ? beyond : lacking) += static_cast<std::size_t>(std::abs(letters));
  return std::max(lacking, beyond);
}

// The edit distance, or `bound` where it is at least that.
std::size_t edit_distance(const std::string& a, const std::string& b, std::size_t bound) {
  if (least_edits(a, b) >= bound) return bound;
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

// Inputs are quoted in messages, whatever they contain; the middle of a long text is omitted.
std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 1600, kEnds = 700;
  if (text.size() <= kMax) return printable(text);
  return fmt::format("{} ... {}", printable(text.substr(0, kEnds)),
                     printable(text.substr(text.size() - kEnds)));
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
  constexpr std::size_t kLongestName = 1000;  // an input may have a whole file in a name's place
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
