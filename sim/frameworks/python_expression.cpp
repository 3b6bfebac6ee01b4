#include "frameworks/python_expression.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "frameworks/python_builtins.h"
#include "frameworks/python_operators.h"

namespace rehearse {

namespace {

constexpr int kDeepest = 60;

Json number_of(std::string text) {
  std::erase(text, '_');
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  if (const auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc() && at == end)
    return whole;
  double real = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, real); error == std::errc() && at == end)
    return real;
  return python_unknown(text);
}

class PythonReader {
 public:
  PythonReader(const std::vector<PythonToken>& tokens, std::size_t& at, const PythonScope& scope)
      : tokens_(tokens), at_(at), scope_(scope) {}

  Json expression() {
    if (++depth_ > kDeepest) return give_up();
    if (word("lambda")) return give_up();
    Json value = either();
    if (word("if")) {
      ++at_;
      const int holds = scope_.truth(either());
      if (!word("else")) return give_up();
      ++at_;
      const Json other = expression();
      if (holds == 0) value = other;
      if (holds < 0) value = python_unknown("if");
    }
    if (!ends() && !ends_value(tokens_[at_])) return give_up();
    --depth_;
    return value;
  }

 private:
  // Behind an operator that is not read, the value is not known.
  static bool ends_value(const PythonToken& token) {
    static constexpr std::array kOps = {",", ":", ")", "]", "}", "="};
    static constexpr std::array kWords = {"for", "if", "else", "async"};
    return std::ranges::any_of(kOps, [&](const char* each) { return token.is(each); }) ||
           std::ranges::any_of(kWords, [&](const char* each) { return token.is_word(each); });
  }

  bool ends() const { return at_ >= tokens_.size(); }
  bool op(const char* text) const { return !ends() && tokens_[at_].is(text); }
  bool word(const char* text) const { return !ends() && tokens_[at_].is_word(text); }
  bool take(const char* text) { return op(text) ? (++at_, true) : false; }

  // Skips an expression that is not read, up to the end of the brackets around it.
  Json give_up() {
    --depth_;
    const std::size_t begin = at_;
    at_ = python_outside_brackets(tokens_, at_,
                                  [](const PythonToken& each) { return each.is(",") || each.is(":"); });
    std::string text;
    for (std::size_t i = begin; i < at_ && i < begin + 8; ++i) text += tokens_[i].text;
    return python_unknown(text);
  }

  Json either() {
    Json value = all();
    while (word("or")) {
      ++at_;
      const Json other = all();
      const int holds = scope_.truth(value);
      if (holds == 0) value = other;
      if (holds < 0) value = python_unknown(python_text(value) + " or " + python_text(other));
    }
    return value;
  }

  Json all() {
    Json value = negation();
    while (word("and")) {
      ++at_;
      const Json other = negation();
      const int holds = scope_.truth(value);
      if (holds == 1) value = other;
      if (holds < 0) value = python_unknown(python_text(value) + " and " + python_text(other));
    }
    return value;
  }

  Json negation() {
    bool inverts = false, some = false;
    for (; word("not"); ++at_) {
      inverts = !inverts;
      some = true;
    }
    Json value = comparison();
    if (!some) return value;
    const int holds = scope_.truth(value);
    return holds < 0 ? python_unknown("not") : Json((holds == 1) != inverts);
  }

  std::string comparator() {
    static constexpr std::array kOps = {"==", "!=", "<=", ">=", "<", ">"};
    for (const char* each : kOps)
      if (take(each)) return each;
    if (word("in")) return ++at_, "in";
    if (word("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].is_word("in")) return at_ += 2, "not in";
    if (!word("is")) return "";
    ++at_;
    return word("not") ? (++at_, "is not") : "is";
  }

  // "a < b < c" is "a < b and b < c".
  Json comparison() {
    Json left = united(), value = left;
    bool is_first = true;
    for (std::string op = comparator(); !op.empty(); op = comparator()) {
      const Json right = united();
      const bool differs = op == "!=" || op == "is not";
      const bool is_same = op == "==" || op == "is" || differs;
      const Json holds =
          is_same ? python_inverted(same(left, right), differs) : python_compared(left, op, right);
      if (is_first || value == true || holds == false) value = holds;
      left = right;
      is_first = false;
    }
    return value;
  }

  // "map | map". Other values have no such operator that is read.
  Json united() {
    Json value = shifted();
    while (op("|")) {
      const int line = tokens_[at_++].line;
      const Json other = shifted();
      const bool are_objects = is_python(value, kPythonReference) && is_python(other, kPythonReference);
      value = are_objects ? scope_.map({{kPythonSpread, value}, {kPythonSpread, other}}, line)
                          : python_unknown(python_text(value) + "|" + python_text(other));
    }
    return value;
  }

  Json shifted() {
    Json value = sum();
    while (op("<<") || op(">>")) {
      const std::string each = tokens_[at_++].text;
      value = python_computed(value, each, sum());
    }
    return value;
  }

  Json same(const Json& a, const Json& b) const {
    if (!a.is_null() && !b.is_null()) return python_equal(a, b);
    const int none = scope_.is_none(a.is_null() ? b : a);
    return none < 0 ? python_unknown(python_text(a) + "==" + python_text(b)) : Json(none == 1);
  }

  Json sum() {
    Json value = product();
    while (op("+") || op("-")) {
      const std::string each = tokens_[at_++].text;
      value = python_computed(value, each, product());
    }
    return value;
  }

  Json product() {
    Json value = sign();
    while (op("*") || op("/") || op("//") || op("%")) {
      const std::string each = tokens_[at_++].text;
      value = python_computed(value, each, sign());
    }
    return value;
  }

  Json sign() {
    bool minus = false;
    for (; op("-") || op("+"); ++at_) minus = minus != op("-");
    Json value = parts();
    while (take("**")) value = python_computed(value, "**", parts());
    return minus ? python_computed(0, "-", value) : value;
  }

  Json parts() {
    Json value = atom();
    for (;;) {
      const bool is_method =
          value.is_string() && op(".") && at_ + 2 < tokens_.size() && tokens_[at_ + 2].is("(");
      if (is_method) {
        const std::string name = tokens_[at_ + 1].text;
        at_ += 3;
        value = python_text_method(value.get<std::string>(), name, entries(")", false));
      } else if (op(".") && at_ + 1 < tokens_.size()) {
        value = scope_.attribute(value, tokens_[at_ + 1].text);
        at_ += 2;
      } else if (op("(")) {
        const int line = tokens_[at_].line;
        ++at_;
        value = scope_.call(value, entries(")", false), line);
      } else if (take("[")) {
        const Json key = list("]");
        value = scope_.at(value, key.size() == 1 ? key[0] : key);
      } else {
        return value;
      }
    }
  }

  // Values of a call, list, tuple or set up to `close`. A spread value keeps its stars: the code that takes
  // the values spreads it. `joins`: the values of "x for y in z" are values of the list.
  std::vector<PythonArgument> entries(const char* close, bool joins) {
    std::vector<PythonArgument> all;
    while (!ends() && !take(close)) {
      const bool named = at_ + 1 < tokens_.size() && tokens_[at_].kind == PythonToken::Kind::name &&
                         tokens_[at_ + 1].is("=");
      std::string name = named ? tokens_[at_].text : "";
      if (named) at_ += 2;
      if (take("**") || take("*")) name = kPythonSpread;
      const std::size_t begin = at_;
      Json value = expression();
      behind_colons(value);
      if (word("for")) {
        value = comprehension(begin);
        if (joins) name = kPythonSpread;
      }
      all.push_back({std::move(name), std::move(value)});
      if (!take(",") && !op(close) && !ends()) ++at_;
    }
    return all;
  }

  // Skips the rest of a slice, or of a lambda.
  void behind_colons(Json& value) {
    while (take(":")) {
      ++depth_;
      value = give_up();
    }
  }

  Json list(const char* close) { return scope_.list(entries(close, true)); }

  // "x for y in z if w", whose "x" begins at `begin`: a list, or unknown where z is not known.
  Json comprehension(std::size_t begin) {
    const std::size_t close = python_outside_brackets(tokens_, at_, [](const PythonToken&) { return false; });
    ++at_;
    const std::string name = ends() ? "" : tokens_[at_].text;
    const bool is_plain = at_ + 1 < tokens_.size() && tokens_[at_ + 1].is_word("in");
    at_ += 2;
    const Json values = is_plain && at_ < close ? either() : Json();
    const std::size_t condition = word("if") ? at_ + 1 : 0;
    if (condition > 0) at_ = condition, either();
    Json all = at_ == close && values.is_array() ? Json::array() : python_unknown("for");
    if (all.is_array()) {
      bound_.emplace_back(name, nullptr);
      for (const Json& each : values) {
        bound_.back().second = each;
        at_ = condition;
        const int holds = condition > 0 ? scope_.truth(either()) : 1;
        at_ = begin;
        if (holds < 0 || !scope_.may_repeat()) {
          all = python_unknown("for");
          break;
        }
        if (holds > 0) all.push_back(expression());
      }
      bound_.pop_back();
    }
    at_ = close;
    return all;
  }

  // "{a: b}" and "{**c}", or the values of a set.
  Json map() {
    const int line = tokens_[at_++].line;
    const std::size_t end = python_outside_brackets(
        tokens_, at_, [](const PythonToken& each) { return each.is(":") || each.is(","); });
    const bool is_set = !op("}") && !op("**") && (end >= tokens_.size() || !tokens_[end].is(":"));
    if (is_set) return list("}");
    std::vector<PythonArgument> entries;
    while (!ends() && !take("}")) {
      if (take("**")) {
        entries.push_back({kPythonSpread, expression()});
      } else {
        const Json key = expression();
        if (take(":")) {
          Json value = expression();
          behind_colons(value);
          entries.push_back({key.is_string() ? key.get<std::string>() : key.dump(), std::move(value)});
        }
        if (word("for")) {
          at_ = python_outside_brackets(tokens_, at_, [](const PythonToken&) { return false; });
          entries = {{kPythonSpread, python_unknown("for")}};
        }
      }
      if (!take(",") && !op("}") && !ends()) ++at_;
    }
    return scope_.map(entries, line);
  }

  Json name(const std::string& text) const {
    for (auto bound = bound_.rbegin(); bound != bound_.rend(); ++bound)
      if (bound->first == text) return bound->second;
    return scope_.name(text);
  }

  // "blocks.{i}.x", where the names in braces have known values.
  Json filled_in(const std::string& text) const {
    std::string filled;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t open = std::min(text.find('{', at), text.size());
      filled += text.substr(at, open - at);
      const std::size_t close = text.find('}', open);
      if (open == text.size()) break;
      const Json value = close == std::string::npos ? Json() : name(text.substr(open + 1, close - open - 1));
      if (!value.is_string() && !value.is_number_integer()) return python_unknown(text);
      filled += python_text(value);
      at = close + 1;
    }
    return filled;
  }

  Json words() {
    std::string text;
    Json open;
    for (; !ends() && tokens_[at_].kind == PythonToken::Kind::text; ++at_) {
      const Json part = tokens_[at_].computed ? filled_in(tokens_[at_].text) : Json(tokens_[at_].text);
      if (part.is_string()) text += part.get<std::string>();
      if (!part.is_string()) open = part;
    }
    return open.is_null() ? Json(text) : open;
  }

  Json atom() {
    if (ends()) return python_unknown("");
    const PythonToken& token = tokens_[at_];
    if (token.kind == PythonToken::Kind::number) return ++at_, number_of(token.text);
    if (token.kind == PythonToken::Kind::text) return words();
    if (token.kind == PythonToken::Kind::name) {
      ++at_;
      if (token.text == "None") return nullptr;
      if (token.text == "True" || token.text == "False") return token.text == "True";
      return name(token.text);
    }
    if (take("[")) return list("]");
    if (op("{")) return map();
    if (take("(")) {
      const std::size_t begin = at_;
      const std::vector<PythonArgument> all = entries(")", false);
      const bool is_tuple = all.size() != 1 || (at_ >= 2 && at_ - 2 >= begin && tokens_[at_ - 2].is(","));
      return is_tuple ? scope_.list(all) : all[0].value;
    }
    ++at_;
    return python_unknown(token.text);
  }

  const std::vector<PythonToken>& tokens_;
  std::size_t& at_;
  const PythonScope& scope_;
  std::vector<std::pair<std::string, Json>> bound_;  // by "for" of a list
  int depth_ = 0;
};

}  // namespace

Json python_value(const std::vector<PythonToken>& tokens, std::size_t& at, const PythonScope& scope) {
  return PythonReader(tokens, at, scope).expression();
}

}  // namespace rehearse
