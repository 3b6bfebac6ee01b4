#include "base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace rehearse {

namespace {

std::string all_of(const std::vector<Violation>& violations) {
  std::vector<std::string> lines;
  for (const Violation& violation : violations) lines.push_back(to_string(violation));
  return join(lines, "\n");
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
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
  }
  return row.back();
}

}  // namespace

std::string to_string(const Violation& violation) {
  std::string text;
  if (!violation.file.empty()) text += violation.file + ": ";
  if (!violation.pointer.empty()) text += violation.pointer + ": ";
  text += violation.rule;
  if (!violation.values.empty()) text += fmt::format(" ({})", violation.values);
  if (!violation.nearest.empty()) text += fmt::format("; nearest legal: {}", violation.nearest);
  return text;
}

InputError::InputError(Violation violation) : InputError(std::vector<Violation>{std::move(violation)}) {}

InputError::InputError(std::vector<Violation> violations)
    : std::runtime_error(all_of(violations)), violations_(std::move(violations)) {}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
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
