// Which value does $((...)) have?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rehearse {

using ShellNumber = std::optional<std::int64_t>;

// Reads integers, names and the operators of C without assignments. No value where a part is not known,
// overflows or divides by zero. `value_of` a name.
ShellNumber shell_arithmetic(const std::string& expression,
                             const std::function<ShellNumber(const std::string&)>& value_of);

}  // namespace rehearse
