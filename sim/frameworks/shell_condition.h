// Does a condition of a shell script hold?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frameworks/shell_tokens.h"

namespace rehearse {

enum class Decided { no, yes, unknown };

inline Decided negated(Decided value) {
  return value == Decided::unknown ? value : value == Decided::yes ? Decided::no : Decided::yes;
}

Decided both(Decided a, Decided b);

// NAME of "$NAME" that neither the text nor the user sets: as for ${NAME:-value} it counts as not set; else
// "".
std::string unset_name(const ShellText& text);

// Whether the variable of this name is set, for -v NAME.
using IsSet = std::function<Decided(const std::string& name)>;

// Decides the words between [ ] or [[ ]], with variables written out. `patterns`: a right side is one, as in
// [[ ]], with '\' before letters in quotes. `may_ignore_case`: shopt -s nocasematch.
Decided shell_condition(const std::vector<ShellText>& words, bool patterns, const IsSet& is_set,
                        bool may_ignore_case = false);

// As `case` compares a word with a pattern.
Decided shell_matches(const ShellText& word, const ShellText& pattern, bool may_ignore_case = false);

}  // namespace rehearse
