#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "base/error.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

// Long names of a verb's options, in the parser's own order.
std::vector<std::string> long_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

void print_bash(const CLI::App& program) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : program.get_subcommands({})) verbs.push_back(verb->get_name());
  fmt::print("_rehearse() {{\n  local words\n  case \"${{COMP_WORDS[1]}}\" in\n");
  for (const CLI::App* verb : program.get_subcommands({})) {
    fmt::print("    {}) words=\"{}\" ;;\n", verb->get_name(), join(long_names(*verb), " "));
  }
  fmt::print("  esac\n  [ \"$COMP_CWORD\" -eq 1 ] && words=\"{} {}\"\n", join(verbs, " "),
             join(long_names(program), " "));
  fmt::print("  COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n");
  fmt::print("complete -o default -F _rehearse rehearse\n");
}

void print_fish(const CLI::App& program) {
  for (const CLI::App* verb : program.get_subcommands({})) {
    fmt::print("complete -c rehearse -n __fish_use_subcommand -a {} -d '{}'\n", verb->get_name(),
               verb->get_description());
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        fmt::print("complete -c rehearse -n '__fish_seen_subcommand_from {}' -l {} -d '{}'\n",
                   verb->get_name(), name, option->get_description());
      }
    }
  }
}

}  // namespace

void add_completion(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("completion", "shell completion, made from the parser itself");
  const auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer(
      "Examples:\n"
      "  source <(rehearse completion bash)\n"
      "  source <(rehearse completion zsh)\n"
      "  rehearse completion fish > ~/.config/fish/completions/rehearse.fish");
  verb->callback([shell, &program, &exit_code] {
    if (*shell == "zsh") fmt::print("autoload -Uz bashcompinit && bashcompinit\n");
    if (*shell == "fish") {
      print_fish(program);
    } else {
      print_bash(program);
    }
    exit_code = kDone;
  });
}

}  // namespace rehearse
