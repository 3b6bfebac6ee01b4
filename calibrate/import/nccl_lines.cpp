#include "calibrate/import/nccl_lines.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace rehearse::nccl {

namespace {

constexpr std::size_t kMaxPrefixes = 16, kLongestPrefix = 512;
constexpr std::string_view kSpaces = " \t\r";

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool is_space(char letter) {
  return kSpaces.find(letter) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// Length of the text's beginning that matches the prefix; npos: no match. Runs of digits match runs of
// digits, and runs of spaces match runs of spaces. Spaces at the ends may be missing.
std::size_t fitting_length(std::string_view prefix, std::string_view text) {
  std::size_t at = 0;
  const auto run = [&](bool (*of)(char)) {
    const std::size_t begin = at;
    while (at < text.size() && of(text[at])) ++at;
    return at - begin;
  };
  for (std::size_t i = 0; i < prefix.size();) {
    const std::size_t begin = i;
    const auto pass = [&](bool (*of)(char)) {
      while (i < prefix.size() && of(prefix[i])) ++i;
    };
    if (is_digit(prefix[i])) {
      pass(is_digit);
      if (run(is_digit) == 0) return std::string_view::npos;
    } else if (is_space(prefix[i])) {
      pass(is_space);
      if (run(is_space) == 0 && begin != 0 && i != prefix.size()) return std::string_view::npos;
    } else if (at < text.size() && text[at] == prefix[i]) {
      ++at, ++i;
    } else {
      return std::string_view::npos;
    }
  }
  return at;
}

// Where the '#' of a table's header stands: before "size", "count" and "time".
std::size_t header_at(std::string_view line) {
  const std::size_t size = line.find("size");
  if (size == std::string_view::npos || line.find("count", size) == std::string_view::npos ||
      line.find("time", size) == std::string_view::npos)
    return std::string_view::npos;
  const std::size_t before = line.substr(0, size).find_last_not_of(kSpaces);
  if (before == std::string_view::npos || line[before] != '#') return std::string_view::npos;
  return before;
}

// Length of the number before a name, without a separator: "-1worker-0". The only negative rank is -1, for
// none.
std::size_t number_before(std::string_view name) {
  if (name.starts_with("-1")) return 2;
  std::size_t end = 0;
  while (end < name.size() && (is_digit(name[end]) || name[end] == '.')) ++end;
  return end;
}

std::string_view without_brackets(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  if (!text.ends_with(']')) return text;
  const std::size_t open = text.rfind('[');
  return open == std::string_view::npos ? text : text.substr(0, open);
}

}  // namespace

LinePrefixes::LinePrefixes(std::string_view log) {
  for (std::size_t begin = 0; begin < log.size() && prefixes_.size() < kMaxPrefixes;) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    const std::size_t at = header_at(line);
    begin = end + 1;
    if (at == std::string_view::npos || at > kLongestPrefix || trimmed(line.substr(0, at)).empty()) continue;
    const std::string prefix(line.substr(0, at));
    if (std::ranges::find(prefixes_, prefix) == prefixes_.end()) prefixes_.push_back(prefix);
  }
  std::ranges::sort(prefixes_, [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string LinePrefixes::without(std::string_view line) const {
  for (const std::string& prefix : prefixes_) {
    const std::size_t length = fitting_length(prefix, line);
    if (length == std::string_view::npos) continue;
    std::string rest(line.substr(length));
    const std::string_view tag = trimmed(prefix);
    const std::string_view row = trimmed(rest);
    // A tag of digits ("12:") cannot be distinguished from a column.
    if (row.empty() || !is_digit(row.front()) || std::isalnum(static_cast<unsigned char>(tag.front())) != 0)
      return rest;
    for (std::size_t at = rest.find(tag.front()); at != std::string::npos;
         at = rest.find(tag.front(), at + 1)) {
      const std::size_t inside = fitting_length(tag, std::string_view(rest).substr(at));
      if (inside != std::string_view::npos) rest.replace(at, inside, " ");
    }
    return rest;
  }
  return std::string(line);
}

bool cut_debug_text(std::string& row, const std::set<std::string>& hosts) {
  std::size_t at = std::string::npos;
  for (const char* words :
       {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL CALL", "NCCL ERROR", "NCCL version"})
    at = std::min(at, row.find(words));
  if (at == std::string::npos) return false;
  std::string_view kept = without_brackets(std::string_view(row).substr(0, at));
  kept = kept.substr(0, kept.find_last_not_of(kSpaces) + 1);
  const std::size_t space = kept.find_last_of(kSpaces);
  const std::size_t begin = space == std::string_view::npos ? 0 : space + 1;
  const std::string_view word = kept.substr(begin);
  if (const std::size_t colon = word.find(':'); colon != std::string_view::npos) {
    const std::string_view name = word.substr(0, colon);
    std::size_t keep = trimmed(kept.substr(0, begin)).empty() ? 0 : number_before(name);
    for (const std::string& host : hosts)
      if (name.ends_with(host)) keep = std::min(keep, name.size() - host.size());
    kept = without_brackets(kept.substr(0, begin + keep));
  }
  row = std::string(kept);
  return true;
}

std::vector<std::string> words_of(std::string_view line) {
  const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
  std::vector<std::string> words;
  for (auto begin = std::find_if_not(line.begin(), line.end(), is_blank); begin != line.end();) {
    const auto end = std::find_if(begin, line.end(), is_blank);
    words.emplace_back(begin, end);
    begin = std::find_if_not(end, line.end(), is_blank);
  }
  return words;
}

bool is_whole(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, is_digit);
}

bool is_number(std::string_view word) {
  if (word == "N/A") return true;
  const std::string text(word);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size() && std::isfinite(value);
}

}  // namespace rehearse::nccl
