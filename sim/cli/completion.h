// How does a shell ask for the possible next words?
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

// `completion words -- WORD...`: prints the words that can replace the last one, each with a tab and a
// description. Returns false, and prints nothing, for any other command line.
bool answers_completion(const Verb& program, const std::vector<std::string>& words);

}  // namespace rehearse
