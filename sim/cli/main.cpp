// The program: parses the command line, runs one verb, and turns what went wrong into a message and an exit
// code.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <system_error>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interruption.h"
#include "cli/say.h"
#include "cli/verbs.h"
#include "kernels/device.h"

namespace rehearse {

namespace {

// The flag of the chosen verb that the user probably meant.
std::string suggestion(const CLI::App& program, const std::vector<std::string>& unknown) {
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
  say(stderr, "rehearse: {}{}\nTry: rehearse --help\n", what, suggestion(program, unknown));
  return kInvalidInput;
}

bool is_verb(const CLI::App& program, const std::string& word) {
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (verb->get_name() == word) return true;
  }
  return false;
}

int parse_and_run(CLI::App& program, int argc, char** argv, const int& exit_code) {
  if (argc > 1 && argv[1][0] != '-' && !is_verb(program, argv[1])) {
    return usage_error(program, fmt::format("there is no verb \"{}\"", argv[1]), {argv[1]});
  }
  try {
    program.parse(argc, argv);
    return exit_code;
  } catch (const CLI::CallForHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return program.exit(help);
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
  program.set_version_flag(
      "--version", [&json] { return json ? version_json() : version_line(); },
      "print the version; with --json before it, of everything inside");
  program.add_flag("--json", json, "with --version: as JSON")->trigger_on_parse();
  program.require_subcommand(1);
  program.footer("`rehearse VERB --help` explains a verb and gives examples.");
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
  add_completion(program, exit_code);
  try {
    return parse_and_run(program, argc, argv, exit_code);
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
