#include "frameworks/shell_arithmetic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace rehearse {

namespace {

constexpr int kDeepestSum = 64;
constexpr int kMaxShift = 62;

struct BinaryOperator {
  std::string_view sign;
  int binds;  // more tightly the higher
};
constexpr int kOfPower = 11;
// Longer signs before their beginnings.
constexpr std::array kOperators = {
    BinaryOperator{"||", 1}, BinaryOperator{"&&", 2}, BinaryOperator{"==", 6}, BinaryOperator{"!=", 6},
    BinaryOperator{"<=", 7}, BinaryOperator{">=", 7}, BinaryOperator{"<<", 8}, BinaryOperator{">>", 8},
    BinaryOperator{"<", 7},  BinaryOperator{">", 7},  BinaryOperator{"|", 3},  BinaryOperator{"^", 4},
    BinaryOperator{"&", 5},  BinaryOperator{"+", 9},  BinaryOperator{"-", 9},  BinaryOperator{"**", kOfPower},
    BinaryOperator{"*", 10}, BinaryOperator{"/", 10}, BinaryOperator{"%", 10}};
constexpr std::array kAssignments = {"<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "="};

ShellNumber power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > kMaxShift) return std::nullopt;
  std::int64_t result = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  return result;
}

ShellNumber shifted(std::string_view sign, std::int64_t value, std::int64_t by) {
  if (by < 0 || by > kMaxShift || value < 0) return std::nullopt;
  if (sign == ">>") return value >> by;
  return value > (std::int64_t{1} << (kMaxShift - by)) ? ShellNumber() : value << by;
}

ShellNumber combined(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (sign == "+") return __builtin_add_overflow(a, b, &result) ? ShellNumber() : result;
  if (sign == "-") return __builtin_sub_overflow(a, b, &result) ? ShellNumber() : result;
  if (sign == "*") return __builtin_mul_overflow(a, b, &result) ? ShellNumber() : result;
  if (sign == "/" || sign == "%") {
    if (b == 0 || b == -1) return b == 0 ? ShellNumber() : combined(sign == "/" ? "-" : "*", 0, a);
    return sign == "/" ? a / b : a % b;
  }
  if (sign == "**") return power(a, b);
  if (sign == "<<" || sign == ">>") return shifted(sign, a, b);
  if (sign == "&") return a & b;
  if (sign == "|") return a | b;
  if (sign == "^") return a ^ b;
  if (sign == "||") return (a != 0 || b != 0) ? 1 : 0;
  if (sign == "&&") return (a != 0 && b != 0) ? 1 : 0;
  if (sign == "==") return a == b ? 1 : 0;
  if (sign == "!=") return a != b ? 1 : 0;
  if (sign == "<=") return a <= b ? 1 : 0;
  if (sign == ">=") return a >= b ? 1 : 0;
  return (sign == "<" ? a < b : a > b) ? 1 : 0;
}

ShellNumber combined(std::string_view sign, ShellNumber a, ShellNumber b) {
  if (sign == "&&" && ((a && *a == 0) || (b && *b == 0))) return 0;
  if (sign == "||" && ((a && *a != 0) || (b && *b != 0))) return 1;
  return a && b ? combined(sign, *a, *b) : ShellNumber();
}

bool is_letter_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool begins_name(char letter) {
  return is_letter_of_name(letter) && std::isdigit(static_cast<unsigned char>(letter)) == 0;
}

// 12, 0x1f, 017 and 10#08.
ShellNumber constant(const std::string& word) {
  int base = 10;
  std::string_view digits = word;
  if (const std::size_t sharp = word.find('#'); sharp != std::string::npos) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + sharp, base);
    if (error != std::errc() || end != word.data() + sharp || base < 2 || base > 36) return std::nullopt;
    digits.remove_prefix(sharp + 1);
  } else if (word.starts_with("0x") || word.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (word.size() > 1 && word[0] == '0') {
    base = 8;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return is_whole && !digits.starts_with('-') ? ShellNumber(number) : std::nullopt;
}

class ShellSum {
 public:
  ShellSum(const std::string& text, const ShellNumbers& numbers) : text_(text), numbers_(numbers) {}

  ShellNumber all() {
    const ShellNumber result = several();
    skip_blanks();
    if (!failed_ && at_ == text_.size()) return result;
    forget_assigned();
    return std::nullopt;
  }

 private:
  enum class Runs { no, maybe, yes };

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool sees(std::string_view sign) const { return text_.compare(at_, sign.size(), sign) == 0; }

  const BinaryOperator* next_operator() {
    skip_blanks();
    for (const BinaryOperator& each : kOperators)
      if (sees(each.sign)) return &each;
    return nullptr;
  }

  bool take(char sign) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }

  ShellNumber fail() {
    failed_ = true;
    at_ = text_.size();
    return std::nullopt;
  }

  // Reads a part that runs where `condition` says so.
  template <typename Read>
  ShellNumber where(ShellNumber condition, Read&& read) {
    const Runs outer = runs_;
    const Runs inner = !condition ? Runs::maybe : *condition != 0 ? Runs::yes : Runs::no;
    runs_ = std::min(outer, inner);
    const ShellNumber result = read();
    runs_ = outer;
    return result;
  }

  // a, b
  ShellNumber several() {
    ShellNumber last = choice();
    while (!failed_ && take(',')) last = choice();
    return last;
  }

  // a ? b : c
  ShellNumber choice() {
    const ShellNumber first = terms(0);
    if (failed_ || !take('?')) return first;
    if (depth_ == kDeepestSum) return fail();
    ++depth_;
    const ShellNumber yes = where(first, [&] { return several(); });
    if (!take(':')) return fail();
    const ShellNumber other = first ? ShellNumber(*first == 0 ? 1 : 0) : std::nullopt;
    const ShellNumber no = where(other, [&] { return choice(); });
    --depth_;
    return !first ? std::nullopt : *first != 0 ? yes : no;
  }

  ShellNumber terms(int least) {
    ShellNumber left = term();
    for (const BinaryOperator* sign = next_operator(); !failed_ && sign && sign->binds > least;
         sign = next_operator()) {
      at_ += sign->sign.size();
      if (depth_ == kDeepestSum) return fail();
      ++depth_;
      const int binds = sign->binds - (sign->binds == kOfPower ? 1 : 0);  // 2 ** 3 ** 2 is 2 ** 9
      ShellNumber condition = 1;
      if (sign->sign == "&&") condition = left;
      if (sign->sign == "||") condition = left ? ShellNumber(*left == 0 ? 1 : 0) : std::nullopt;
      const ShellNumber right = where(condition, [&] { return terms(binds); });
      left = combined(sign->sign, left, right);
      --depth_;
    }
    return left;
  }

  ShellNumber term() {
    skip_blanks();
    if (at_ == text_.size() || depth_ == kDeepestSum) return fail();
    if (sees("++") || sees("--")) {
      const std::size_t sign = at_;
      at_ += 2;
      skip_blanks();
      if (at_ < text_.size() && begins_name(text_[at_])) return stepped_before(text_[sign] == '+' ? 1 : -1);
      at_ = sign;
    }
    const char first = text_[at_];
    if (first == '(' || first == '-' || first == '+' || first == '!' || first == '~') {
      ++depth_;
      ++at_;
      const ShellNumber inside = first == '(' ? several() : term();
      --depth_;
      if (first == '(' && !take(')')) return fail();
      if (!inside) return std::nullopt;
      if (first == '-') return combined("-", std::int64_t{0}, *inside);
      if (first == '!') return *inside == 0 ? 1 : 0;
      return first == '~' ? ~*inside : *inside;
    }
    return value();
  }

  ShellNumber stepped_before(std::int64_t by) {
    const std::string word = name();
    return assign(word, combined("+", numbers_.value_of(word), by));
  }

  ShellNumber assign(const std::string& word, ShellNumber value) {
    if (runs_ == Runs::no) return value;
    if (!numbers_.set) return std::nullopt;
    numbers_.set(word, runs_ == Runs::yes ? value : std::nullopt);
    return value;
  }

  // NAME or NAME[3]; the index is written as a number.
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter_of_name(text_[at_])) ++at_;
    std::string word = text_.substr(begin, at_ - begin);
    if (at_ == text_.size() || text_[at_] != '[') return word;
    ++at_;
    if (depth_ == kDeepestSum) return fail(), word;
    ++depth_;
    const ShellNumber index = several();
    --depth_;
    if (!index || !take(']')) return fail(), word;
    return word + "[" + std::to_string(*index) + "]";
  }

  ShellNumber value() {
    if (text_[at_] == '$') return unknown();
    if (begins_name(text_[at_])) return variable();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter_of_name(text_[at_]) || text_[at_] == '#')) ++at_;
    const ShellNumber number = constant(text_.substr(begin, at_ - begin));
    return number ? number : fail();
  }

  ShellNumber variable() {
    const std::string word = name();
    if (failed_) return std::nullopt;
    skip_blanks();
    if (sees("++") || sees("--")) {
      const ShellNumber before = numbers_.value_of(word);
      assign(word, combined("+", before, text_[at_] == '+' ? 1 : -1));
      at_ += 2;
      return before;
    }
    for (const std::string_view sign : kAssignments) {
      if (!sees(sign) || (sign == "=" && sees("=="))) continue;
      at_ += sign.size();
      if (depth_ == kDeepestSum) return fail();
      ++depth_;
      const ShellNumber right = choice();
      --depth_;
      if (failed_) return std::nullopt;
      return assign(word, sign == "="
                              ? right
                              : combined(sign.substr(0, sign.size() - 1), numbers_.value_of(word), right));
    }
    return numbers_.value_of(word);
  }

  // $NAME, ${...} or $(...), which the script does not set.
  ShellNumber unknown() {
    ++at_;
    if (at_ == text_.size()) return fail();
    const char open = text_[at_], close = open == '{' ? '}' : ')';
    if (open != '{' && open != '(') {
      while (at_ < text_.size() && is_letter_of_name(text_[at_])) ++at_;
      return std::nullopt;
    }
    int depth = 0;
    do {
      depth += text_[at_] == open ? 1 : text_[at_] == close ? -1 : 0;
      ++at_;
    } while (depth > 0 && at_ < text_.size());
    return depth == 0 ? std::nullopt : fail();
  }

  // An expression that cannot be read leaves all that it may assign undecided.
  void forget_assigned() {
    bool assigns = text_.find("++") != std::string::npos || text_.find("--") != std::string::npos;
    for (std::size_t at = text_.find('='); at != std::string::npos; at = text_.find('=', at + 1))
      assigns =
          assigns || ((at == 0 || std::string_view("=!<>").find(text_[at - 1]) == std::string_view::npos) &&
                      text_.compare(at, 2, "==") != 0);
    if (!assigns || !numbers_.set) return;
    for (at_ = 0; at_ < text_.size(); ++at_) {
      if (!begins_name(text_[at_])) continue;
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_letter_of_name(text_[at_])) ++at_;
      numbers_.set(text_.substr(begin, at_ - begin), std::nullopt);
    }
  }

  const std::string& text_;
  const ShellNumbers& numbers_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Runs runs_ = Runs::yes;
  bool failed_ = false;
};

}  // namespace

ShellNumber shell_arithmetic(const std::string& expression, const ShellNumbers& numbers) {
  return ShellSum(expression, numbers).all();
}

ShellNumber shell_integer(const std::string& digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() ? ShellNumber(value) : std::nullopt;
}

}  // namespace rehearse
