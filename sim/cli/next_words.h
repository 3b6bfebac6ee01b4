// Which words may stand next on a command line?
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

struct NextWord {
  std::string word, help;
};

// That begin as `word` does, which stands behind `before`, the words after the program's name. None where a
// file may stand. A flag and its value may be one word, or three (bash parts them at "=").
std::vector<NextWord> next_words(const Verb& program, const std::vector<std::string>& before,
                                 const std::string& word);

}  // namespace rehearse
