// What did a user probably mean who typed words that the program does not take?
#pragma once

#include <string>

#include "cli/parser.h"

namespace rehearse {

// "; did you mean --gpus?", or "" for nothing near.
std::string suggestion(const Verb& program, const UsageError& error);

// For words that are no flag or verb because a variable of the shell was not set, as in `--svg "$OUT"`: the
// message; "" where every word says something.
std::string empty_value(const std::vector<std::string>& words);

}  // namespace rehearse
