#include "frameworks/shell_condition.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "frameworks/shell_arithmetic.h"
#include "frameworks/shell_pattern.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxWordsOfCondition = 200;  // of a condition
constexpr int kDeepestBrackets = 32;               // ( ( ... ) )

Decided decided(bool value) {
  return value ? Decided::yes : Decided::no;
}

// '$' ends a regular expression; elsewhere it begins the name of a variable that is not set.
bool is_known_regex(const ShellText& text) {
  const std::string all = flat(text);
  if (!std::ranges::all_of(text, &ShellPiece::has_letters)) return false;
  for (std::size_t at = all.find('$'); at != std::string::npos; at = all.find('$', at + 1))
    if (at + 1 < all.size() && all[at + 1] != ')' && all[at + 1] != '|' && (at == 0 || all[at - 1] != '\\'))
      return false;
  return !branch_of(text);
}

Decided decided(std::optional<bool> value) {
  return value ? decided(*value) : Decided::unknown;
}

// Texts whose order is the same in every locale.
bool is_ordered(const std::string& text) {
  return std::ranges::all_of(
      text, [](char one) { return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z'); });
}

Decided fits(const ShellText& left, const ShellText& pattern, bool may_ignore_case) {
  const auto fit = [&](bool ignores) { return shell_glob(flat(pattern), flat(left), ignores); };
  return !may_ignore_case || fit(true) == fit(false) ? decided(fit(false)) : Decided::unknown;
}

Decided compared(const ShellText& left, const std::string& sign, const ShellText& right, bool patterns,
                 bool may_ignore_case) {
  if (sign == "=~" && patterns) {
    if (!is_decided(left) || !is_known_regex(right) || may_ignore_case) return Decided::unknown;
    return decided(shell_regex(flat(right), flat(left), nullptr));
  }
  if (!is_decided(left) || !is_decided(right)) return Decided::unknown;
  if (sign == "=" || sign == "==" || sign == "!=") {
    const Decided same = patterns ? fits(left, right, may_ignore_case) : decided(flat(left) == flat(right));
    return sign == "!=" ? negated(same) : same;
  }
  if (sign == "<" || sign == ">") {
    if (!is_ordered(flat(left)) || !is_ordered(flat(right))) return Decided::unknown;
    return decided(sign == "<" ? flat(left) < flat(right) : flat(left) > flat(right));
  }
  const auto a = shell_integer(flat(left)), b = shell_integer(flat(right));
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
  ShellCondition(const std::vector<ShellText>& words, bool patterns, const IsSet& is_set,
                 bool may_ignore_case)
      : words_(words), patterns_(patterns), is_set_(is_set), may_ignore_case_(may_ignore_case) {}

  Decided all() {
    if (words_.size() > kMaxWordsOfCondition) return Decided::unknown;
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
    return word == "||" || word == "-o" || word == "&&" || word == "-a" || word == ")";
  }

  Decided primary() {
    if (at_ == words_.size()) return Decided::unknown;
    if (sees(0, "!") && at_ + 1 < words_.size()) {
      ++at_;
      return negated(primary());
    }
    if (patterns_ && sees(0, "(")) {
      if (++depth_ > kDeepestBrackets) return at_ = words_.size(), Decided::unknown;
      ++at_;
      const Decided inside = either();
      --depth_;
      return sees(0, ")") ? (++at_, inside) : (at_ = words_.size() + 1, Decided::unknown);
    }
    const ShellText& first = words_[at_];
    const std::string sign = at_ + 1 < words_.size() ? flat(words_[at_ + 1]) : "";
    if (flat(first) == "-z" || flat(first) == "-n") return emptiness();
    if (flat(first) == "-v" && !sign.empty() && !joins(sign)) {
      at_ += 2;
      return is_decided(words_[at_ - 1]) ? is_set_(sign) : Decided::unknown;
    }
    if (at_ + 2 < words_.size() && !joins(sign)) {
      const Decided result = compared(first, sign, words_[at_ + 2], patterns_, may_ignore_case_);
      at_ += 3;
      return result;
    }
    if (!sign.empty() && !joins(sign)) {  // -f FILE and its like; [ = x ] of an empty word is an error
      at_ += 2;
      return words_.size() == 2 && (flat(first) == "=" || flat(first) == "==" || flat(first) == "!=")
                 ? Decided::no
                 : Decided::unknown;
    }
    ++at_;
    return is_decided(first) ? decided(!flat(first).empty()) : Decided::unknown;
  }

  Decided emptiness() {
    const bool wants_empty = flat(words_[at_]) == "-z";
    if (at_ + 1 == words_.size()) return ++at_, decided(true);
    const ShellText& word = words_[at_ + 1];
    at_ += 2;
    if (!unset_name(word).empty()) return decided(wants_empty);
    return is_decided(word) ? decided(flat(word).empty() == wants_empty) : Decided::unknown;
  }

  const std::vector<ShellText>& words_;
  bool patterns_;
  const IsSet& is_set_;
  bool may_ignore_case_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string unset_name(const ShellText& text) {
  std::string name = flat(text);
  if (branch_of(text) || !name.starts_with('$') || text.front().has_letters()) return "";
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

Decided shell_condition(const std::vector<ShellText>& words, bool patterns, const IsSet& is_set,
                        bool may_ignore_case) {
  return ShellCondition(words, patterns, is_set, may_ignore_case).all();
}

Decided shell_matches(const ShellText& word, const ShellText& pattern, bool may_ignore_case) {
  if (flat(pattern) == "*") return Decided::yes;
  return compared(word, "=", pattern, true, may_ignore_case);
}

}  // namespace rehearse
