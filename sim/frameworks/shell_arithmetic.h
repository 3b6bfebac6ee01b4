// Which value does $((...)) have?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rehearse {

using ShellNumber = std::optional<std::int64_t>;

// The variables of an expression: NAME or NAME[3]. One is set to no number where the text does not decide it.
struct ShellNumbers {
  std::function<ShellNumber(const std::string& name)> value_of;
  std::function<void(const std::string& name, ShellNumber value)> set = {};
};

// Reads integers, names and the operators of C, with those that assign, and "**". No value where a part is
// not known, overflows or divides by zero.
ShellNumber shell_arithmetic(const std::string& expression, const ShellNumbers& numbers);

// The number that a text of digits alone holds.
ShellNumber shell_integer(const std::string& digits);

}  // namespace rehearse
