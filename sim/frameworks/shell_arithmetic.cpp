#include "frameworks/shell_arithmetic.h"

#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace rehearse {

namespace {

constexpr int kDeepestSum = 64;

struct BinaryOperator {
  std::string_view sign;
  int binds;  // more tightly the higher
};
// Longer signs before their beginnings.
constexpr std::array kOperators = {BinaryOperator{"||", 1}, BinaryOperator{"&&", 2}, BinaryOperator{"==", 3},
                                   BinaryOperator{"!=", 3}, BinaryOperator{"<=", 4}, BinaryOperator{">=", 4},
                                   BinaryOperator{"<", 4},  BinaryOperator{">", 4},  BinaryOperator{"+", 5},
                                   BinaryOperator{"-", 5},  BinaryOperator{"*", 6},  BinaryOperator{"/", 6},
                                   BinaryOperator{"%", 6}};

ShellNumber combined(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (sign == "+") return __builtin_add_overflow(a, b, &result) ? ShellNumber() : result;
  if (sign == "-") return __builtin_sub_overflow(a, b, &result) ? ShellNumber() : result;
  if (sign == "*") return __builtin_mul_overflow(a, b, &result) ? ShellNumber() : result;
  if (sign == "/" || sign == "%") {
    if (b == 0 || b == -1) return b == 0 ? ShellNumber() : combined(sign == "/" ? "-" : "*", 0, a);
    return sign == "/" ? a / b : a % b;
  }
  if (sign == "||") return (a != 0 || b != 0) ? 1 : 0;
  if (sign == "&&") return (a != 0 && b != 0) ? 1 : 0;
  if (sign == "==") return a == b ? 1 : 0;
  if (sign == "!=") return a != b ? 1 : 0;
  if (sign == "<=") return a <= b ? 1 : 0;
  if (sign == ">=") return a >= b ? 1 : 0;
  return (sign == "<" ? a < b : a > b) ? 1 : 0;
}

class ShellSum {
 public:
  ShellSum(const std::string& text, const std::function<ShellNumber(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  ShellNumber all() {
    const ShellNumber result = choice();
    skip_blanks();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  const BinaryOperator* next_operator() {
    skip_blanks();
    for (const BinaryOperator& each : kOperators)
      if (text_.compare(at_, each.sign.size(), each.sign) == 0) return &each;
    return nullptr;
  }

  bool take(char sign) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != sign) return false;
    ++at_;
    return true;
  }

  // a ? b : c
  ShellNumber choice() {
    const ShellNumber first = terms(0);
    if (!first || !take('?')) return first;
    if (depth_ == kDeepestSum) return std::nullopt;
    ++depth_;
    const ShellNumber yes = choice();
    const bool is_closed = yes && take(':');
    const ShellNumber no = is_closed ? choice() : std::nullopt;
    --depth_;
    if (!no) return std::nullopt;
    return *first != 0 ? yes : no;
  }

  ShellNumber terms(int least) {
    ShellNumber left = term();
    for (const BinaryOperator* sign = next_operator(); left && sign && sign->binds > least;
         sign = next_operator()) {
      at_ += sign->sign.size();
      const ShellNumber right = terms(sign->binds);
      if (!right) return std::nullopt;
      left = combined(sign->sign, *left, *right);
    }
    return left;
  }

  ShellNumber term() {
    skip_blanks();
    if (at_ == text_.size() || depth_ == kDeepestSum) return std::nullopt;
    const char first = text_[at_];
    if (first == '(' || first == '-' || first == '+' || first == '!') {
      ++depth_;
      ++at_;
      const ShellNumber inside = first == '(' ? choice() : term();
      --depth_;
      if (!inside) return std::nullopt;
      if (first == '-') return combined("-", 0, *inside);
      if (first == '!') return *inside == 0 ? 1 : 0;
      if (first == '+') return inside;
      return take(')') ? inside : std::nullopt;
    }
    return value();
  }

  ShellNumber value() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty()) return std::nullopt;
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) return value_of_(word);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool octal = word.size() > 1 && word[0] == '0';
    if (error != std::errc() || end != word.data() + word.size() || octal) return std::nullopt;
    return number;
  }

  const std::string& text_;
  const std::function<ShellNumber(const std::string&)>& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

ShellNumber shell_arithmetic(const std::string& expression,
                             const std::function<ShellNumber(const std::string&)>& value_of) {
  return ShellSum(expression, value_of).all();
}

}  // namespace rehearse
