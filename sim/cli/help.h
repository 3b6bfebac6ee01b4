// How does a user ask what a verb does, and how is the answer laid out?
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rehearse {

// `help VERB` is `VERB --help`, and `help` is `--help`; other words stay as they are.
std::vector<std::string> without_help_verb(std::vector<std::string> words);

// The help of the verb that was parsed, as wide as the terminal. `all`: of options that are rarely used, too.
void print_help(const CLI::App& program, bool all);

}  // namespace rehearse
