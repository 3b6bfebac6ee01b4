#include "frameworks/shell_pattern.h"

#include <fnmatch.h>
#include <regex.h>

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

constexpr std::size_t kLongestPattern = 64, kLongestText = 64;  // fnmatch tries all ways
constexpr std::size_t kLongestReplaced = 512;
constexpr std::size_t kMaxGroups = 10;

// Whether letters of the pattern stand for more than themselves.
bool is_active(const std::string& pattern) {
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\') {
      ++at;
    } else if (std::string_view("*?[").find(pattern[at]) != std::string_view::npos ||
               (pattern[at] == '(' && at > 0 &&
                std::string_view("@!+").find(pattern[at - 1]) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

bool repeats_groups(const std::string& pattern) {
  return std::ranges::any_of(std::array{"*(", "+(", "!("},
                             [&](const char* each) { return pattern.find(each) != std::string::npos; });
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char one) {
    return one >= 'A' && one <= 'Z' ? static_cast<char>(one - 'A' + 'a') : one;
  });
  return text;
}

}  // namespace

std::vector<std::string> shell_patterns(const std::string& text) {
  std::vector<std::string> all(1);
  char quote = '\0';
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char one = text[at];
    if (one == '\\' && quote != '\'' && at + 1 < text.size()) {
      all.back() += one;
      all.back() += text[++at];
      continue;
    }
    if (quote == '\0' && (one == '"' || one == '\''))
      quote = one;
    else if (one == quote)
      quote = '\0';
    if (quote == '\0' && (one == '(' || one == '{')) ++depth;
    if (quote == '\0' && (one == ')' || one == '}')) --depth;
    if (one == '|' && quote == '\0' && depth == 0)
      all.emplace_back();
    else
      all.back() += one;
  }
  return all;
}

std::string without_escapes(const std::string& pattern) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
    text += pattern[at];
  }
  return text;
}

std::optional<bool> shell_glob(const std::string& pattern, const std::string& text, bool ignores_case) {
  if (!is_active(pattern)) {
    const std::string same = without_escapes(pattern);
    return ignores_case ? in_lower_case(same) == in_lower_case(text) : same == text;
  }
  if (pattern == "*") return true;
  if (pattern.size() > kLongestPattern || text.size() > kLongestText || repeats_groups(pattern))
    return std::nullopt;
  const int flags = FNM_EXTMATCH | (ignores_case ? FNM_CASEFOLD : 0);
  return fnmatch(pattern.c_str(), text.c_str(), flags) == 0;
}

std::optional<bool> shell_regex(const std::string& pattern, const std::string& text,
                                std::vector<std::string>* groups) {
  // A count such as {1000} makes the compiled expression large, and \1 makes it slow.
  const bool is_large = pattern.size() > kLongestPattern || text.size() > kLongestReplaced ||
                        pattern.find('{') != std::string::npos;
  for (std::size_t at = pattern.find('\\'); at != std::string::npos; at = pattern.find('\\', at + 2))
    if (at + 1 < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[at + 1])) != 0)
      return std::nullopt;
  if (is_large) return std::nullopt;
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED) != 0) return std::nullopt;
  std::array<regmatch_t, kMaxGroups> found{};
  const bool fits = regexec(&compiled, text.c_str(), found.size(), found.data(), 0) == 0;
  if (groups) groups->clear();
  for (std::size_t i = 0; fits && groups && i <= std::min(compiled.re_nsub, kMaxGroups - 1); ++i) {
    const auto begin = found[i].rm_so, end = found[i].rm_eo;
    groups->push_back(
        begin < 0 ? "" : text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  }
  regfree(&compiled);
  return fits;
}

std::optional<std::string> shell_replaced(const std::string& value, const std::string& pattern,
                                          const std::string& to, bool all) {
  const bool is_plain = !is_active(pattern);
  const std::string same = without_escapes(pattern);
  if (pattern.empty() || (is_plain && same.empty())) return value;
  if (!is_plain && (value.size() > kLongestReplaced || pattern.size() > kLongestPattern ||
                    pattern.find('(') != std::string::npos))
    return std::nullopt;
  // The longest part from here that fits.
  const auto fitting = [&](std::size_t at) -> std::size_t {
    if (is_plain) return value.compare(at, same.size(), same) == 0 ? same.size() : 0;
    for (std::size_t size = value.size() - at; size > 0; --size)
      if (fnmatch(pattern.c_str(), value.substr(at, size).c_str(), 0) == 0) return size;
    return 0;
  };
  std::string result;
  bool is_done = false;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t size = is_done ? 0 : fitting(at);
    if (size == 0) {
      result += value[at++];
      continue;
    }
    result += to;
    at += size;
    is_done = !all;
  }
  return result;
}

}  // namespace rehearse
