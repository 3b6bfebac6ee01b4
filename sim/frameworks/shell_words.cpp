#include "frameworks/shell_words.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "frameworks/shell_arithmetic.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestValue = 4096;
constexpr std::size_t kLongestChange = 64;
constexpr std::int64_t kMaxNumbers = 1000;  // of seq

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Removes the shortest or longest beginning, or end, that fits the pattern.
std::string without(const std::string& value, const std::string& pattern, bool at_end, bool longest) {
  for (std::size_t i = 0; i <= value.size(); ++i) {
    const std::size_t size = longest ? value.size() - i : i;
    const std::string part = at_end ? value.substr(value.size() - size) : value.substr(0, size);
    if (fits(pattern, part)) return at_end ? value.substr(0, value.size() - size) : value.substr(size);
  }
  return value;
}

std::optional<std::string> substring(const std::string& value, const std::string& range) {
  std::array<std::int64_t, 2> numbers = {0, static_cast<std::int64_t>(value.size())};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < numbers.size() && begin <= range.size(); ++i) {
    const std::size_t end = std::min(range.find(':', begin), range.size());
    std::string digits = range.substr(begin, end - begin);
    std::erase(digits, ' ');
    const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), numbers[i]);
    if (error != std::errc() || at != digits.data() + digits.size()) return std::nullopt;
    begin = end + 1;
  }
  const auto size = static_cast<std::int64_t>(value.size());
  const std::int64_t from =
      std::clamp<std::int64_t>(numbers[0] < 0 ? size + numbers[0] : numbers[0], 0, size);
  const std::int64_t count =
      numbers[1] < 0 ? std::max<std::int64_t>(0, size + numbers[1] - from) : numbers[1];
  return value.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(count));
}

std::optional<std::string> replaced(std::string value, std::string change) {
  const bool all = change.starts_with('/');
  if (all) change.erase(0, 1);
  const std::size_t border = change.find('/');
  const std::string from = change.substr(0, border);
  const std::string to = border == std::string::npos ? "" : change.substr(border + 1);
  if (from.empty() || from.find_first_of("*?[#%") != std::string::npos) return std::nullopt;
  for (std::size_t at = value.find(from); at != std::string::npos; at = value.find(from, at + to.size())) {
    value.replace(at, from.size(), to);
    if (!all || value.size() > kLongestValue) break;
  }
  return value;
}

std::string cased(std::string text, bool upper, bool all) {
  for (std::size_t i = 0; i < text.size() && (all || i == 0); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    text[i] = static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
  }
  return text;
}

std::optional<std::string> sum_of(const std::string& expression) {
  const ShellNumber value = shell_arithmetic(expression, [](const std::string&) { return ShellNumber(); });
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

std::optional<std::string> numbers_of(const std::vector<std::string>& words) {
  std::array<std::int64_t, 2> range = {1, 1};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    std::int64_t& number = range[words.size() == 2 ? 1 : i - 1];
    const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || at != word.data() + word.size()) return std::nullopt;
  }
  if (range[0] < 0 || range[1] - range[0] > kMaxNumbers || range[1] > 1'000'000'000) return std::nullopt;
  std::string all;
  for (std::int64_t number = range[0]; number <= range[1]; ++number)
    all += (all.empty() ? "" : " ") + std::to_string(number);
  return all;
}

}  // namespace

std::optional<std::string> changed_value(const std::string& value, const std::string& change) {
  if (value.size() > kLongestValue || change.size() > kLongestChange || change.empty()) return std::nullopt;
  if (change == ",," || change == ",") return cased(value, false, change.size() == 2);
  if (change == "^^" || change == "^") return cased(value, true, change.size() == 2);
  const bool twice = change.size() > 1 && change[1] == change[0];
  const std::string rest = change.substr(twice ? 2 : 1);
  if (change[0] == '%') return without(value, rest, true, twice);
  if (change[0] == '#') return without(value, rest, false, twice);
  if (change[0] == '/') return replaced(value, change.substr(1));
  if (change[0] == ':') return substring(value, change.substr(1));
  return std::nullopt;
}

std::optional<std::string> output_of(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  const std::string& name = words[0];
  for (const std::string& word : words)
    if (word.find('$') != std::string::npos || word.size() > kLongestValue) return std::nullopt;
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (name == "expr") return sum_of(join(rest, " "));
  const bool is_echo = name == "echo";
  if (is_echo && rest.size() >= 2 && rest.back() == "bc" && rest[rest.size() - 2] == "|")
    return sum_of(join({rest.begin(), rest.end() - 2}, " "));
  if (std::ranges::any_of(rest,
                          [](const std::string& word) { return word == "|" || word == ";" || word == "&&"; }))
    return std::nullopt;
  if (is_echo && (rest.empty() || !rest[0].starts_with('-'))) return join(rest, " ");
  if (name == "basename" && (rest.size() == 1 || rest.size() == 2)) {
    std::string file = rest[0].substr(rest[0].find_last_of('/') + 1);
    if (rest.size() == 2 && file.ends_with(rest[1])) file.erase(file.size() - rest[1].size());
    return file;
  }
  if (name == "dirname" && rest.size() == 1) {
    const std::size_t slash = rest[0].find_last_of('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : rest[0].substr(0, slash);
  }
  if (name == "seq" && (rest.size() == 1 || rest.size() == 2)) return numbers_of(words);
  return std::nullopt;
}

}  // namespace rehearse
