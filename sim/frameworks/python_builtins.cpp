#include "frameworks/python_builtins.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse {

Json python_builtin(const std::string& name, const std::vector<PythonArgument>& arguments) {
  static constexpr std::array kOthers = {"isinstance", "hasattr", "str",  "bool",   "list",     "tuple",
                                         "set",        "sorted",  "any",  "all",    "sum",      "range",
                                         "enumerate",  "zip",     "map",  "filter", "print",    "type",
                                         "abs",        "round",   "open", "repr",   "reversed", "issubclass",
                                         "callable",   "divmod",  "pow",  "vars",   "locals",   "globals"};
  const auto are_numbers = [&] {
    return std::ranges::all_of(arguments, [](const PythonArgument& each) { return each.value.is_number(); });
  };
  const bool one = arguments.size() == 1 && arguments[0].name.empty();
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
  if (std::ranges::find(kOthers, name) != kOthers.end()) return python_unknown(name + "()");
  return Json(Json::value_t::discarded);
}

}  // namespace rehearse
