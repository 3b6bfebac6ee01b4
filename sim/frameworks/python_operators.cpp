#include "frameworks/python_operators.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace rehearse {

namespace {

// The beginning of a text, with no letter cut in two.
std::string shown(const std::string& text) {
  constexpr std::size_t kShown = 60;
  std::string begin = text.substr(0, kShown);
  while (!is_utf8(begin)) begin.pop_back();
  return begin;
}

constexpr double kExactPython = 9007199254740992.0;  // 2^53: doubles hold every integer up to it
constexpr std::size_t kLongestPython = 4096;         // letters of a word, values of a list

Json whole_or_real(double value, bool real) {
  if (!std::isfinite(value)) return python_unknown("overflow");
  if (real) return value;
  return std::abs(value) < kExactPython ? Json(static_cast<std::int64_t>(value)) : python_unknown("overflow");
}

// A field that nothing has set, or the value of a function that is not read.
bool is_open(const Json& value) {
  return is_python(value, kPythonUnknown) || is_python(value, kPythonReference) ||
         (is_python(value, kPythonName) && python_text(value).starts_with('.'));
}

Json among(const Json& value, const Json& list) {
  Json found = false;
  for (const Json& each : list) {
    const Json same = python_equal(value, each);
    if (same == true) return true;
    if (same != false) found = same;
  }
  return found;
}

// "'x' * 3" and "[x] * 3": the value, `size` letters or elements long, added to itself.
template <typename Value, typename Add>
Json python_repeated(Value empty, std::size_t size, std::int64_t count, const Add& add) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(0, count));
  if (size == 0 || times == 0) return empty;
  if (size > kLongestPython / times) return python_unknown("a long value");
  for (std::size_t i = 0; i < times; ++i) add(empty);
  return empty;
}

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

Json python_computed(const Json& a, const std::string& op, const Json& b) {
  const bool numbers = a.is_number() && b.is_number();
  const auto is_long = [](const Json& each) {
    return (each.is_string() && each.get_ref<const std::string&>().size() > kLongestPython) ||
           (each.is_array() && each.size() > kLongestPython);
  };
  if (is_long(a) || is_long(b)) return python_unknown("a long value");
  if (op == "+" && a.is_string() && b.is_string()) return a.get<std::string>() + b.get<std::string>();
  if (op == "+" && a.is_array() && b.is_array()) {
    Json both = a;
    for (const Json& each : b) both.push_back(each);
    return both;
  }
  if (op == "*" && b.is_number_integer() && a.is_string()) {
    const std::string text = a.get<std::string>();
    return python_repeated(std::string(), text.size(), b.get<std::int64_t>(),
                           [&](auto& all) { all += text; });
  }
  if (op == "*" && b.is_number_integer() && a.is_array())
    return python_repeated(Json(Json::array()), a.size(), b.get<std::int64_t>(), [&](Json& all) {
      for (const Json& each : a) all.push_back(each);
    });
  if (!numbers) return python_unknown(python_text(a) + op + python_text(b));
  const double x = a.get<double>(), y = b.get<double>();
  const bool real = a.is_number_float() || b.is_number_float();
  if (op == "+") return whole_or_real(x + y, real);
  if (op == "-") return whole_or_real(x - y, real);
  if (op == "*") return whole_or_real(x * y, real);
  if (op == "**") return whole_or_real(std::pow(x, y), real || y < 0);
  if (op == "<<" || op == ">>") {
    if (real || y < 0 || y > 52) return python_unknown(python_text(a) + op + python_text(b));
    return whole_or_real(
        op == "<<" ? std::ldexp(x, static_cast<int>(y)) : std::floor(std::ldexp(x, -static_cast<int>(y))),
        false);
  }
  if (y == 0) return python_unknown("division by zero");
  if (op == "/") return whole_or_real(x / y, true);
  if (op == "//") return whole_or_real(std::floor(x / y), real);
  return whole_or_real(x - std::floor(x / y) * y, real);
}

Json python_equal(const Json& a, const Json& b) {
  const auto is_constant = [](const Json& value) {
    return is_python(value, kPythonName) && python_text(value).find('.') == std::string::npos;
  };
  const Json open = python_unknown(python_text(a) + "==" + python_text(b));
  if (is_open(a) || is_open(b)) return open;
  if (a == b) return true;
  const bool mixed = is_python(a, kPythonName) != is_python(b, kPythonName);
  return mixed || is_constant(a) || is_constant(b) ? open : Json(false);
}

Json python_inverted(const Json& value, bool inverts) {
  return inverts && value.is_boolean() ? Json(!value.get<bool>()) : value;
}

Json python_compared(const Json& a, const std::string& op, const Json& b) {
  const Json open = python_unknown(python_text(a) + op + python_text(b));
  if (op == "in" || op == "not in") {
    const bool inverts = op == "not in";
    if (b.is_array()) return python_inverted(among(a, b), inverts);
    if (!a.is_string() || !b.is_string()) return open;
    const bool has =
        b.get_ref<const std::string&>().find(a.get_ref<const std::string&>()) != std::string::npos;
    return has != inverts;
  }
  if (!a.is_number() || !b.is_number()) return open;
  const double x = a.get<double>(), y = b.get<double>();
  return op == "<" ? x < y : op == ">" ? x > y : op == "<=" ? x <= y : x >= y;
}

}  // namespace rehearse
