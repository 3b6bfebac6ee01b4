// How does a shell ask which words may stand next?
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

// `completion words -- WORD...`: prints the words that may stand in the place of the last one, each with a
// tab and what it is. False, and prints nothing, of any other command line.
bool answers_completion(const Verb& program, const std::vector<std::string>& words);

}  // namespace rehearse
