// Which words can come next on a command line?
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

struct NextWord {
  std::string word, help;
};

// Words that begin like `word`. `before`: the words between the program's name and it. None where a file may
// come. A flag and its value may be one word, or three (bash splits them at "=").
std::vector<NextWord> next_words(const Verb& program, const std::vector<std::string>& before,
                                 const std::string& word);

}  // namespace rehearse
