// How does a user ask what a verb does, and how is the answer laid out?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// Flags of every verb: "--help", "--help-all".
struct HelpFlag {
  const char* name;
  const char* help;
};
const std::vector<HelpFlag>& help_flags();

// `help VERB` is `VERB --help`, and `help` is `--help`; other words stay as they are.
std::vector<std::string> without_help_verb(std::vector<std::string> words);

// As wide as the terminal.
void print_help(const std::string& text);

}  // namespace rehearse
