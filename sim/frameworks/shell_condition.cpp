#include "frameworks/shell_condition.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>

namespace rehearse {

namespace {

constexpr std::size_t kMaxWords = 200;  // of a condition
constexpr std::size_t kLongestPattern = 64;

// Whether the text sets the word, in every branch alike.
bool is_known(const ShellText& text) {
  return !branch_of(text) && flat(text).find('$') == std::string::npos;
}

Decided decided(bool value) {
  return value ? Decided::yes : Decided::no;
}

std::optional<std::int64_t> integer_of(const ShellText& text) {
  const std::string digits = flat(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

Decided compared(const ShellText& left, const std::string& sign, const ShellText& right, bool patterns) {
  if (!is_known(left) || !is_known(right)) return Decided::unknown;
  if (sign == "=" || sign == "==" || sign == "!=") {
    const bool is_long = flat(right).size() > kLongestPattern || flat(left).size() > kLongestPattern;
    if (patterns && is_long) return Decided::unknown;  // fnmatch tries all ways
    const bool same =
        patterns ? fnmatch(flat(right).c_str(), flat(left).c_str(), 0) == 0 : flat(left) == flat(right);
    return decided(same == (sign != "!="));
  }
  const auto a = integer_of(left), b = integer_of(right);
  if (!a || !b) return Decided::unknown;
  if (sign == "-eq") return decided(*a == *b);
  if (sign == "-ne") return decided(*a != *b);
  if (sign == "-lt") return decided(*a < *b);
  if (sign == "-le") return decided(*a <= *b);
  if (sign == "-gt") return decided(*a > *b);
  if (sign == "-ge") return decided(*a >= *b);
  return Decided::unknown;
}

class ShellCondition {
 public:
  ShellCondition(const std::vector<ShellText>& words, bool patterns, const IsSet& is_set)
      : words_(words), patterns_(patterns), is_set_(is_set) {}

  Decided all() {
    if (words_.size() > kMaxWords) return Decided::unknown;
    if (words_.empty()) return Decided::no;
    const Decided result = either();
    return at_ == words_.size() ? result : Decided::unknown;
  }

 private:
  bool sees(std::size_t ahead, const char* word) const {
    return at_ + ahead < words_.size() && flat(words_[at_ + ahead]) == word;
  }

  Decided either() {
    Decided left = every();
    while (sees(0, "||") || sees(0, "-o")) {
      ++at_;
      left = negated(both(negated(left), negated(every())));
    }
    return left;
  }

  Decided every() {
    Decided left = primary();
    while (sees(0, "&&") || sees(0, "-a")) {
      ++at_;
      left = both(left, primary());
    }
    return left;
  }

  static bool joins(const std::string& word) {
    return word == "||" || word == "-o" || word == "&&" || word == "-a";
  }

  Decided primary() {
    if (at_ == words_.size()) return Decided::unknown;
    if (sees(0, "!") && at_ + 1 < words_.size()) {
      ++at_;
      return negated(primary());
    }
    const ShellText& first = words_[at_];
    const std::string sign = at_ + 1 < words_.size() ? flat(words_[at_ + 1]) : "";
    if (flat(first) == "-z" || flat(first) == "-n") return emptiness();
    if (flat(first) == "-v" && !sign.empty() && !joins(sign)) {
      at_ += 2;
      return is_known(words_[at_ - 1]) ? is_set_(sign) : Decided::unknown;
    }
    if (at_ + 2 < words_.size() && !joins(sign)) {
      const Decided result = compared(first, sign, words_[at_ + 2], patterns_);
      at_ += 3;
      return result;
    }
    if (!sign.empty() && !joins(sign)) {  // -f FILE and its like
      at_ += 2;
      return Decided::unknown;
    }
    ++at_;
    return is_known(first) ? decided(!flat(first).empty()) : Decided::unknown;
  }

  Decided emptiness() {
    const bool wants_empty = flat(words_[at_]) == "-z";
    if (at_ + 1 == words_.size()) return ++at_, decided(true);
    const ShellText& word = words_[at_ + 1];
    at_ += 2;
    if (!unset_name(word).empty()) return decided(wants_empty);
    return is_known(word) ? decided(flat(word).empty() == wants_empty) : Decided::unknown;
  }

  const std::vector<ShellText>& words_;
  bool patterns_;
  const IsSet& is_set_;
  std::size_t at_ = 0;
};

}  // namespace

std::string unset_name(const ShellText& text) {
  std::string name = flat(text);
  if (branch_of(text) || !name.starts_with('$')) return "";
  name.erase(0, 1);
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  const bool is_name = std::all_of(name.begin(), name.end(), [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_';
  });
  return is_name ? name : "";
}

Decided both(Decided a, Decided b) {
  if (a == Decided::no || b == Decided::no) return Decided::no;
  return a == Decided::yes && b == Decided::yes ? Decided::yes : Decided::unknown;
}

Decided shell_condition(const std::vector<ShellText>& words, bool patterns, const IsSet& is_set) {
  return ShellCondition(words, patterns, is_set).all();
}

Decided shell_matches(const ShellText& word, const ShellText& pattern) {
  if (flat(pattern) == "*") return Decided::yes;
  return compared(word, "=", pattern, true);
}

}  // namespace rehearse
