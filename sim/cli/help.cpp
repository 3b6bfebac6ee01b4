#include "cli/help.h"

#include <fmt/core.h>

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace rehearse {

const std::vector<HelpFlag>& help_flags() {
  static const std::vector<HelpFlag> flags = {{"--help", "Print this help message and exit"},
                                              {"--help-all", "show all options"}};
  return flags;
}

std::vector<std::string> without_help_verb(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  if (words.size() > 1 && words[1].starts_with('-')) return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

void print_help(const std::string& text) {
  // Output to a file or a pager is wrapped too: long lines are hard to read.
  constexpr std::size_t kColumnsOfAPage = 100;
  const std::size_t columns = terminal_columns();
  fmt::print("{}", help_in_columns(text, columns == 0 ? kColumnsOfAPage : columns));
}

Verb help_verb() {
  Verb verb{"help", "what a verb does, with its flags and examples"};
  verb.add({{"verb"},
            [](const std::vector<std::string>&) {},  // without_help_verb() handles it
            "the verb, and the format of import, export or calibrate; left out: all verbs",
            "[VERB]"});
  verb.footer =
      "Examples:\n"
      "  rehearse help\n"
      "  rehearse help simulate\n"
      "  rehearse help import megatron";
  verb.run = [] { return kDone; };
  return verb;
}

}  // namespace rehearse
