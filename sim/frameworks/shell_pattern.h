// Does a text fit a pattern of the shell?
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// As `case` and [[ a == b ]] compare; '\' stands before letters that mean themselves. None for patterns that
// take too long or are not read: "*(...)", "+(...)", "!(...)".
std::optional<bool> shell_glob(const std::string& pattern, const std::string& text, bool ignores_case);

// As [[ a =~ b ]]. `groups` becomes the whole match and the texts of its brackets.
std::optional<bool> shell_regex(const std::string& pattern, const std::string& text,
                                std::vector<std::string>* groups);

// Replaces the first part, or all parts, that fit the pattern, as ${NAME/a/b} and ${NAME//a/b}. None where
// the value or the pattern is longer than any that scripts have.
std::optional<std::string> shell_replaced(const std::string& value, const std::string& pattern,
                                          const std::string& to, bool all);

// The patterns of a|"b|c"|@(d|e), as `case` separates them.
std::vector<std::string> shell_patterns(const std::string& text);

// Without the '\' before letters.
std::string without_escapes(const std::string& pattern);

}  // namespace rehearse
