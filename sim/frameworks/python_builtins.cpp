#include "frameworks/python_builtins.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/names.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxRange = 4096;
constexpr std::size_t kLongestText = 4096;

Json every_or_some(bool every, const Json& list) {
  const Json open = python_unknown(every ? "all()" : "any()");
  if (!list.is_array()) return open;
  bool is_open = false;
  for (const Json& each : list) {
    const int holds = python_truth(each);
    if (holds == (every ? 0 : 1)) return !every;
    is_open = is_open || holds < 0;
  }
  return is_open ? open : Json(every);
}

// "range(end)", "range(begin, end)" and "range(begin, end, step)".
Json range_of(const std::vector<PythonArgument>& arguments) {
  std::vector<std::int64_t> numbers;
  for (const PythonArgument& each : arguments) {
    const bool is_small =
        each.value.is_number_integer() && each.value >= -kMaxRange && each.value <= kMaxRange;
    if (is_small) numbers.push_back(each.value.get<std::int64_t>());
  }
  const std::size_t count = arguments.size();
  if (count < 1 || count > 3 || numbers.size() != count) return python_unknown("range()");
  const std::int64_t step = count == 3 ? numbers[2] : 1, end = count == 1 ? numbers[0] : numbers[1];
  if (step == 0) return python_unknown("range()");
  Json all = Json::array();
  for (std::int64_t at = count == 1 ? 0 : numbers[0]; step > 0 ? at < end : at > end; at += step)
    all.push_back(at);
  return all;
}

Json joined(const std::string& between, const Json& words) {
  const Json open = python_unknown("join()");
  if (!words.is_array()) return open;
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].is_string() || all.size() > kLongestText) return open;
    all += (i > 0 ? between : "") + words[i].get<std::string>();
  }
  return all;
}

// "split(x)" of a text.
Json parted(const std::string& text, const std::string& between) {
  if (between.empty()) return python_unknown("split()");
  Json all = Json::array();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(between, begin), text.size());
    all.push_back(text.substr(begin, end - begin));
    begin = end + between.size();
    if (end == text.size()) break;
  }
  return all;
}

// "divmod(a, b)", a pair of integers.
Json divided(const std::vector<PythonArgument>& arguments) {
  if (arguments.size() != 2 || !arguments[0].value.is_number_integer() ||
      !arguments[1].value.is_number_integer())
    return python_unknown("divmod()");
  const Json &a = arguments[0].value, &b = arguments[1].value;
  return Json::array({python_computed(a, "//", b), python_computed(a, "%", b)});
}

}  // namespace

Json python_text_method(const std::string& text, const std::string& name,
                        const std::vector<PythonArgument>& arguments) {
  const bool one = arguments.size() == 1 && arguments[0].name.empty();
  if (name == "join" && one) return joined(text, arguments[0].value);
  if (arguments.empty() && name == "lower") return in_lower_case(text);
  if (!one || !arguments[0].value.is_string()) return python_unknown(name + "()");
  const std::string other = arguments[0].value.get<std::string>();
  if (name == "startswith") return text.starts_with(other);
  if (name == "endswith") return text.ends_with(other);
  if (name == "split") return parted(text, other);
  return python_unknown(name + "()");
}

Json python_builtin(const std::string& name, const std::vector<PythonArgument>& arguments) {
  static constexpr std::array kOthers = {
      "isinstance", "hasattr",  "str",        "bool",     "list",  "tuple", "set",    "sorted", "sum",
      "enumerate",  "zip",      "map",        "filter",   "print", "type",  "abs",    "round",  "open",
      "repr",       "reversed", "issubclass", "callable", "pow",   "vars",  "locals", "globals"};
  const auto are_numbers = [&] {
    return std::ranges::all_of(arguments, [](const PythonArgument& each) { return each.value.is_number(); });
  };
  const bool one = arguments.size() == 1 && arguments[0].name.empty();
  if (name == "divmod") return divided(arguments);
  if (name == "int" && one && arguments[0].value.is_boolean()) return arguments[0].value == true ? 1 : 0;
  if (name == "int" || name == "float") {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (!one || !are_numbers() || std::abs(arguments[0].value.get<double>()) > kExact)
      return python_unknown(name + "()");
    return name == "int" ? Json(static_cast<std::int64_t>(arguments[0].value.get<double>()))
                         : arguments[0].value;
  }
  if (name == "max" || name == "min") {
    if (arguments.size() < 2 || !are_numbers()) return python_unknown(name + "()");
    const auto less = [](const auto& a, const auto& b) {
      return a.value.template get<double>() < b.value.template get<double>();
    };
    return name == "max" ? std::ranges::max_element(arguments, less)->value
                         : std::ranges::min_element(arguments, less)->value;
  }
  if (name == "len")
    return one && arguments[0].value.is_array() ? Json(std::ssize(arguments[0].value))
                                                : python_unknown("len()");
  if (name == "all" || name == "any")
    return one ? every_or_some(name == "all", arguments[0].value) : python_unknown(name + "()");
  if (name == "range") return range_of(arguments);
  if (std::ranges::find(kOthers, name) != kOthers.end()) return python_unknown(name + "()");
  return Json(Json::value_t::discarded);
}

}  // namespace rehearse
