// How does a user ask for the help of a verb, and how is it laid out?
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

// Changes `help VERB` to `VERB --help`, and `help` to `--help`; other words are unchanged.
std::vector<std::string> without_help_verb(std::vector<std::string> words);

// Uses the terminal's width.
void print_help(const std::string& text);

}  // namespace rehearse
