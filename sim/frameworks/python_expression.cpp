#include "frameworks/python_expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace rehearse {

namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53: doubles hold every integer up to it
constexpr int kDeepest = 60;
constexpr const char* kSpread = "**";
constexpr std::size_t kLongest = 4096;  // letters of a word, values of a list

// The beginning of a text, with no letter cut in two.
std::string shown(const std::string& text) {
  constexpr std::size_t kShown = 60;
  std::string begin = text.substr(0, kShown);
  while (!is_utf8(begin)) begin.pop_back();
  return begin;
}

Json whole_or_real(double value, bool real) {
  if (!std::isfinite(value)) return python_unknown("overflow");
  if (real) return value;
  return std::abs(value) < kExact ? Json(static_cast<std::int64_t>(value)) : python_unknown("overflow");
}

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

Json computed(const Json& a, const std::string& op, const Json& b) {
  const bool numbers = a.is_number() && b.is_number();
  const auto is_long = [](const Json& each) {
    return (each.is_string() && each.get_ref<const std::string&>().size() > kLongest) ||
           (each.is_array() && each.size() > kLongest);
  };
  if (is_long(a) || is_long(b)) return python_unknown("a long value");
  if (op == "+" && a.is_string() && b.is_string()) return a.get<std::string>() + b.get<std::string>();
  if (op == "+" && a.is_array() && b.is_array()) {
    Json both = a;
    for (const Json& each : b) both.push_back(each);
    return both;
  }
  if (!numbers) return python_unknown(python_text(a) + op + python_text(b));
  const double x = a.get<double>(), y = b.get<double>();
  const bool real = a.is_number_float() || b.is_number_float();
  if (op == "+") return whole_or_real(x + y, real);
  if (op == "-") return whole_or_real(x - y, real);
  if (op == "*") return whole_or_real(x * y, real);
  if (op == "**") return whole_or_real(std::pow(x, y), real || y < 0);
  if (y == 0) return python_unknown("division by zero");
  if (op == "/") return whole_or_real(x / y, true);
  if (op == "//") return whole_or_real(std::floor(x / y), real);
  return whole_or_real(x - std::floor(x / y) * y, real);
}

// A field that nothing has set, or the value of a function that is not read.
bool is_open(const Json& value) {
  return is_python(value, kPythonUnknown) || is_python(value, kPythonReference) ||
         (is_python(value, kPythonName) && python_text(value).starts_with('.'));
}

// Names of other modules are compared by their text: two constants may have one value.
Json equal(const Json& a, const Json& b) {
  const auto is_constant = [](const Json& value) {
    return is_python(value, kPythonName) && python_text(value).find('.') == std::string::npos;
  };
  const Json open = python_unknown(python_text(a) + "==" + python_text(b));
  if (is_open(a) || is_open(b)) return open;
  if (a == b) return true;
  const bool mixed = is_python(a, kPythonName) != is_python(b, kPythonName);
  return mixed || is_constant(a) || is_constant(b) ? open : Json(false);
}

Json among(const Json& value, const Json& list) {
  Json found = false;
  for (const Json& each : list) {
    const Json same = equal(value, each);
    if (same == true) return true;
    if (same != false) found = same;
  }
  return found;
}

Json inverted(const Json& value, bool inverts) {
  return inverts && value.is_boolean() ? Json(!value.get<bool>()) : value;
}

Json compared(const Json& a, const std::string& op, const Json& b) {
  const Json open = python_unknown(python_text(a) + op + python_text(b));
  if (op == "in" || op == "not in") return b.is_array() ? inverted(among(a, b), op == "not in") : open;
  if (!a.is_number() || !b.is_number()) return open;
  const double x = a.get<double>(), y = b.get<double>();
  return op == "<" ? x < y : op == ">" ? x > y : op == "<=" ? x <= y : x >= y;
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
    --depth_;
    return value;
  }

 private:
  bool ends() const { return at_ >= tokens_.size(); }
  bool op(const char* text) const { return !ends() && tokens_[at_].is(text); }
  bool word(const char* text) const { return !ends() && tokens_[at_].is_word(text); }
  bool take(const char* text) { return op(text) ? (++at_, true) : false; }

  // What is not read here: to the end of the brackets around it.
  Json give_up() {
    --depth_;
    const std::size_t begin = at_;
    for (int open = 0; !ends(); ++at_) {
      const PythonToken& token = tokens_[at_];
      if (token.is("(") || token.is("[") || token.is("{")) ++open;
      if ((token.is(")") || token.is("]") || token.is("}")) && open-- == 0) break;
      if (open == 0 && (token.is(",") || token.is(":"))) break;
    }
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

  Json comparison() {
    Json value = sum();
    for (std::string op = comparator(); !op.empty(); op = comparator()) {
      const Json other = sum();
      const bool differs = op == "!=" || op == "is not";
      if (op == "==" || op == "is" || differs)
        value = inverted(same(value, other), differs);
      else
        value = compared(value, op, other);
    }
    return value;
  }

  Json same(const Json& a, const Json& b) const {
    if (!a.is_null() && !b.is_null()) return equal(a, b);
    const int none = scope_.is_none(a.is_null() ? b : a);
    return none < 0 ? python_unknown(python_text(a) + "==" + python_text(b)) : Json(none == 1);
  }

  Json sum() {
    Json value = product();
    while (op("+") || op("-")) {
      const std::string each = tokens_[at_++].text;
      value = computed(value, each, product());
    }
    return value;
  }

  Json product() {
    Json value = sign();
    while (op("*") || op("/") || op("//") || op("%")) {
      const std::string each = tokens_[at_++].text;
      value = computed(value, each, sign());
    }
    return value;
  }

  Json sign() {
    bool minus = false;
    for (; op("-") || op("+"); ++at_) minus = minus != op("-");
    Json value = parts();
    while (take("**")) value = computed(value, "**", parts());
    return minus ? computed(0, "-", value) : value;
  }

  Json parts() {
    Json value = atom();
    for (;;) {
      if (op(".") && at_ + 1 < tokens_.size()) {
        value = scope_.attribute(value, tokens_[at_ + 1].text);
        at_ += 2;
      } else if (op("(")) {
        const int line = tokens_[at_].line;
        value = scope_.call(value, arguments(), line);
      } else if (take("[")) {
        const Json key = list("]");
        value = scope_.at(value, key.size() == 1 ? key[0] : key);
      } else {
        return value;
      }
    }
  }

  std::vector<PythonArgument> arguments() {
    std::vector<PythonArgument> all;
    take("(");
    while (!ends() && !take(")")) {
      const bool named = at_ + 1 < tokens_.size() && tokens_[at_].kind == PythonToken::Kind::name &&
                         tokens_[at_ + 1].is("=");
      const std::string name = named ? tokens_[at_].text : "";
      if (named) at_ += 2;
      const bool spreads = take("**") || take("*");
      Json value = expression();
      if (word("for")) give_up_from(value);
      all.push_back({spreads ? kSpread : name, std::move(value)});
      if (!take(",") && !op(")") && !ends()) ++at_;
    }
    return all;
  }

  void give_up_from(Json& value) {
    ++depth_;
    give_up();
    value = python_unknown("for");
  }

  Json list(const char* close) {
    Json all = Json::array();
    while (!ends() && !take(close)) {
      const bool spreads = take("*");
      Json value = expression();
      if (spreads && value.is_array()) {
        for (Json& each : value) all.push_back(std::move(each));
        if (!take(",") && !op(close) && !ends()) ++at_;
        continue;
      }
      if (spreads) value = python_unknown("*" + python_text(value));
      if (word("for") || op(":")) {
        if (take(":")) expression();
        give_up_from(value);
      }
      all.push_back(std::move(value));
      if (!take(",") && !op(close) && !ends()) ++at_;
    }
    return all;
  }

  Json map() {
    const int line = tokens_[at_].line;
    std::vector<PythonArgument> entries;
    ++at_;
    while (!ends() && !take("}")) {
      if (take("**")) {
        entries.push_back({kSpread, expression()});
      } else {
        const Json key = expression();
        if (take(":"))
          entries.push_back({key.is_string() ? key.get<std::string>() : key.dump(), expression()});
        if (word("for")) {
          ++depth_;
          entries = {{kSpread, give_up()}};
        }
      }
      if (!take(",") && !op("}") && !ends()) ++at_;
    }
    return scope_.map(entries, line);
  }

  Json atom() {
    if (ends()) return python_unknown("");
    const PythonToken& token = tokens_[at_];
    if (token.kind == PythonToken::Kind::number) return ++at_, number_of(token.text);
    if (token.kind == PythonToken::Kind::text) {
      std::string text;
      bool open = false;
      for (; !ends() && tokens_[at_].kind == PythonToken::Kind::text; ++at_) {
        text += tokens_[at_].text;
        open = open || tokens_[at_].computed;
      }
      return open ? python_unknown(text) : Json(text);
    }
    if (token.kind == PythonToken::Kind::name) {
      ++at_;
      if (token.text == "None") return nullptr;
      if (token.text == "True" || token.text == "False") return token.text == "True";
      return scope_.name(token.text);
    }
    if (take("[")) return list("]");
    if (op("{")) return map();
    if (take("(")) {
      const std::size_t begin = at_;
      Json all = list(")");
      const bool is_tuple = all.size() != 1 || (at_ >= 2 && at_ - 2 >= begin && tokens_[at_ - 2].is(","));
      return is_tuple ? all : Json(all[0]);
    }
    ++at_;
    return python_unknown(token.text);
  }

  const std::vector<PythonToken>& tokens_;
  std::size_t& at_;
  const PythonScope& scope_;
  int depth_ = 0;
};

}  // namespace

bool is_python(const Json& value, const char* kind) {
  return value.is_object() && value.size() == 1 && value.contains(kind);
}

Json python_unknown(const std::string& text) {
  return {{kPythonUnknown, shown(text)}};
}

std::string python_text(const Json& value) {
  if (is_python(value, kPythonUnknown)) return value[kPythonUnknown].get<std::string>();
  if (is_python(value, kPythonName)) {
    const std::string text = value[kPythonName].get<std::string>();
    const std::size_t slash = text.starts_with('.') ? text.find('/') : std::string::npos;
    return slash == std::string::npos ? text : "." + text.substr(slash + 1);
  }
  if (is_python(value, kPythonReference)) return "object";
  return shown(value.is_string() ? value.get<std::string>() : value.dump());
}

int python_truth(const Json& value) {
  if (value.is_null()) return 0;
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number()) return value.get<double>() != 0 ? 1 : 0;
  if (value.is_string() || value.is_array()) return value.empty() || value == "" ? 0 : 1;
  return is_python(value, kPythonReference) ? 1 : -1;
}

Json python_value(const std::vector<PythonToken>& tokens, std::size_t& at, const PythonScope& scope) {
  return PythonReader(tokens, at, scope).expression();
}

}  // namespace rehearse
