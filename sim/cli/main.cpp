// The program: parses the command line, runs one verb, and turns what went wrong into a message and an exit
// code.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/quantity.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/grouped_help.h"
#include "cli/help.h"
#include "cli/interruption.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "cluster/cluster.h"
#include "kernels/device.h"

namespace rehearse {

namespace {

// Names that other programs have for the same, where spelling leads astray.
const std::map<std::string, std::string>& names_elsewhere() {
  static const std::map<std::string, std::string> names = {
      {"--num-gpus", "--gpus"},       {"--world-size", "--gpus"},      {"--batch-size", "--gbs"},
      {"--sequence-length", "--seq"}, {"--num-microbatches", "--gbs"}, {"--dtype", "--precision"}};
  return names;
}

// The value of an unknown flag: after "=", the next unknown word, or what was taken for the scenario's file.
std::string value_of(const CLI::App& verb, const std::vector<std::string>& unknown, std::size_t flag) {
  const std::size_t equals = unknown[flag].find('=');
  if (equals != std::string::npos) return unknown[flag].substr(equals + 1);
  if (flag + 1 < unknown.size()) return unknown[flag + 1];
  const CLI::Option* const scenario = verb.get_option_no_throw("scenario");
  return scenario == nullptr || scenario->results().empty() ? "" : scenario->results().back();
}

// "--nodes 16" of a cluster of eight GPUs a node is "--gpus 128".
std::string gpus_of_nodes(const CLI::App& verb, const std::vector<std::string>& unknown) {
  static const std::set<std::string> kNodes = {"--nodes", "--nnodes", "--num-nodes", "--hosts"};
  constexpr double kMostNodes = 1e6;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    if (!kNodes.contains(unknown[i].substr(0, unknown[i].find('=')))) continue;
    const CLI::Option* const cluster = verb.get_option_no_throw("--cluster");
    if (verb.get_option_no_throw("--gpus") == nullptr || cluster == nullptr) return "";
    const std::optional<double> nodes = parse_decimal(value_of(verb, unknown, i));
    if (!nodes || *nodes < 1 || *nodes > kMostNodes || cluster->results().empty())
      return "; GPUs are counted, not nodes: --gpus N";
    const int gpus = read_cluster(cluster->results().back()).node.gpus;
    return fmt::format("; GPUs are counted, not nodes: --gpus {:.0f} ({:.0f} nodes of {} GPUs)",
                       *nodes * gpus, *nodes, gpus);
  }
  return "";
}

// What a verb offers in the place of a word that it does not know.
std::string formats_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* format : verb.get_subcommands({})) names.push_back(format->get_name());
  return names.empty() || !verb.get_subcommands().empty()
             ? ""
             : fmt::format("; {} takes one of {}", verb.get_name(), join(names));
}

// The flag of the chosen verb that the user probably meant.
std::string suggestion(const CLI::App& program, const std::vector<std::string>& unknown) {
  for (const CLI::App* verb : program.get_subcommands()) {
    if (std::string said = gpus_of_nodes(*verb, unknown); !said.empty()) return said;
    for (const std::string& word : unknown)
      if (const auto found = names_elsewhere().find(word.substr(0, word.find('=')));
          found != names_elsewhere().end() && verb->get_option_no_throw(found->second) != nullptr)
        return fmt::format("; did you mean {}?", found->second);
    if (std::string said = formats_of(*verb); !said.empty()) return said;
  }
  std::vector<std::string> known;
  for (const CLI::App* verb : program.get_subcommands()) {
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  }
  if (known.empty()) {
    for (const CLI::App* verb : program.get_subcommands({})) known.push_back(verb->get_name());
  }
  for (const std::string& word : unknown) {
    const std::string near = nearest_name(word.substr(0, word.find('=')), known);
    if (!near.empty()) return fmt::format("; did you mean {}?", near);
  }
  return "";
}

int usage_error(const CLI::App& program, const std::string& what, const std::vector<std::string>& unknown) {
  std::string verb;
  for (const CLI::App* chosen : program.get_subcommands()) verb = chosen->get_name() + " ";
  say(stderr, "rehearse: {}{}\nTry: rehearse {}--help\n", what, suggestion(program, unknown), verb);
  return kInvalidInput;
}

// What an unset variable of the shell leaves of `--svg "$OUT"` and of `--svg="$OUT"`: no value, and not what
// comes without the flag. The message; "" where every word says something.
std::string empty_value(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_flag = word.starts_with("--") && word.find('=') + 1 == word.size();
    if (is_flag) return word.substr(0, word.size() - 1) + ": the value is empty";
    if (!word.empty()) continue;
    const bool follows_flag = i > 0 && words[i - 1].starts_with('-');
    return (follows_flag ? words[i - 1] : "a word") + (follows_flag ? ": the value is empty" : " is empty");
  }
  return "";
}

bool is_verb(const CLI::App& program, const std::string& word) {
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (verb->get_name() == word) return true;
  }
  return false;
}

int parse_and_run(CLI::App& program, std::vector<std::string> words, const int& exit_code) {
  if (answers_completion(program, words)) return kDone;
  words = without_help_verb(std::move(words));
  if (!words.empty() && !words[0].starts_with('-') && !is_verb(program, words[0]))
    return usage_error(program, fmt::format("there is no verb \"{}\"", words[0]), {words[0]});
  if (const std::string message = empty_value(words); !message.empty()) {
    say(stderr, "rehearse: {}\nTry: rehearse {}--help\n", message,
        is_verb(program, words[0]) ? words[0] + " " : "");
    return kInvalidInput;
  }
  try {
    std::ranges::reverse(words);  // as the parser takes them
    program.parse(words);
    return exit_code;
  } catch (const CLI::CallForHelp&) {
    print_help(program, false);
    return kDone;
  } catch (const CLI::CallForAllHelp&) {
    print_help(program, true);
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    return program.exit(version);
  } catch (const CLI::ExtrasError& error) {
    return usage_error(program, error.what(), program.remaining(true));
  } catch (const CLI::ParseError& error) {
    return usage_error(program, error.what(), {});
  }
}

int run(int argc, char** argv) {
  CLI::App program("Rehearse a training run before it takes the stage.", "rehearse");
  int exit_code = kDone;
  bool json = false;
  use_grouped_help(program);
  program.set_version_flag(
      "--version", [&json] { return json ? version_json() : version_line(); },
      "print the version; with --json before it, of everything inside");
  program.add_flag("--json", json, "with --version: as JSON")->trigger_on_parse();
  program.require_subcommand(1);
  program.footer("`rehearse help VERB` explains a verb and gives examples.");
  add_init(program, exit_code);
  add_simulate(program, exit_code);
  add_execute(program, exit_code);
  add_compare(program, exit_code);
  add_check(program, exit_code);
  add_memory(program, exit_code);
  add_plan(program, exit_code);
  add_sweep(program, exit_code);
  add_studio(program, exit_code);
  add_validate(program, exit_code);
  add_topo(program, exit_code);
  add_goodput(program, exit_code);
  add_explain(program, exit_code);
  add_import(program, exit_code);
  add_export(program, exit_code);
  add_calibrate(program, exit_code);
  add_doctor(program, exit_code);
  add_list(program, exit_code);
  add_completion(program, exit_code);
  add_help(program, exit_code);
  try {
    return parse_and_run(program, {argv + 1, argv + argc}, exit_code);
  } catch (const InputError& error) {
    for (const Violation& violation : error.violations()) say(stderr, "rehearse: {}\n", to_string(violation));
    return kInvalidInput;
  } catch (const kernels::Refused& error) {
    say(stderr, "rehearse: {}\n", error.what());
    return kInvalidInput;
  } catch (const DoesNotFit& error) {
    say(stderr, "rehearse: {}\n", error.what());
    return kDoesNotFit;
  } catch (const MissingCalibration& error) {
    say(stderr, "rehearse: {}\n", error.what());
    return kMissing;
  } catch (const std::bad_alloc&) {
    say(stderr, "rehearse: out of memory\n");
    return kFailure;
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    say(stderr, "rehearse: {}{}\n", no_thread ? "no thread can be started: " : "", error.what());
    return kFailure;
  } catch (const std::exception& error) {
    say(stderr, "rehearse: {}\n", error.what());
    return kFailure;
  }
}

// A stream that the shell closed stays one that cannot be written: the next file to be opened would take its
// number, and the talk would land in it.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDONLY);  // takes the lowest number: this one
}

// What was printed has arrived, or the program has failed.
int after_printing(int exit_code) {
  if (std::cout.flush() && std::fflush(stdout) == 0) return exit_code;
  if (exit_code != kFailure) say(stderr, "rehearse: cannot write to standard output\n");
  return exit_code == kDone ? kFailure : exit_code;
}

}  // namespace

}  // namespace rehearse

int main(int argc, char** argv) {
  rehearse::keep_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no more is an error of the write
  rehearse::end_when_interrupted();
  rehearse::remember_command(argc, argv);
  return rehearse::after_printing(rehearse::run(argc, argv));
}
