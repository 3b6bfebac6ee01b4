// How do ${NAME%.sh}, ${NAME:0:3} and their like change the value of a variable?
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// The value as the operator behind the name changes it: ",,", "^^", "%pattern", "##pattern", "/a/b", ":0:3".
// None where the operator is not known, or the pattern is longer than any that scripts have.
std::optional<std::string> changed_value(const std::string& value, const std::string& change);

// A sum on which expr, bc and the shell agree.
std::optional<std::string> sum_of(const std::string& expression);

// The text that `printf FORMAT ARGUMENT...` prints.
std::optional<std::string> printed(const std::string& format, const std::vector<std::string>& arguments);

// The text that a command prints which computes from its words alone. These are echo, printf, expr, basename,
// dirname and seq. `words`: the command, with variables written out.
std::optional<std::string> output_of(const std::vector<std::string>& words);

}  // namespace rehearse
