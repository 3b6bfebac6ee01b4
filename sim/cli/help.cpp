#include "cli/help.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/terminal.h"
#include "cli/verbs.h"

namespace rehearse {

std::vector<std::string> without_help_verb(std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  if (words.size() > 1 && words[1].starts_with('-')) return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

void print_help(const CLI::App& program, bool all) {
  // What goes to a file or a pager is broken, too: a page of lines of any length is hard to read.
  constexpr std::size_t kColumnsOfAPage = 100;
  const std::size_t columns = terminal_columns();
  const std::string help = program.help("", all ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal);
  fmt::print("{}", help_in_columns(help, columns == 0 ? kColumnsOfAPage : columns));
}

void add_help(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("help", "what a verb does, with its flags and examples");
  verb->add_option("verb", "the verb, and the format of import, export or calibrate; left out: all verbs")
      ->option_text("[VERB]");
  verb->footer(
      "Examples:\n"
      "  rehearse help\n"
      "  rehearse help simulate\n"
      "  rehearse help import megatron");
  verb->callback([&exit_code] { exit_code = kDone; });
}

}  // namespace rehearse
