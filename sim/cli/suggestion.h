// What did a user probably mean by words that the program does not accept?
#pragma once

#include <string>

#include "cli/parser.h"

namespace rehearse {

// "; did you mean --gpus?", or "" without a near match.
std::string suggestion(const Verb& program, const UsageError& error);

// The message for a word that is empty because a shell variable was not set, as in `--svg "$OUT"`; "" where
// no word is empty.
std::string empty_value(const std::vector<std::string>& words);

}  // namespace rehearse
