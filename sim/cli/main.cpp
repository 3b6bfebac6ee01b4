// The program: parses the command line, runs one verb, and turns errors into a message and an exit code.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/interruption.h"
#include "base/say.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/parser.h"
#include "cli/suggestion.h"
#include "cli/verbs.h"
#include "kernels/device.h"

namespace rehearse {

namespace {

Verb program() {
  return {.name = "rehearse",
          .help = "Rehearse a training run before it takes the stage.",
          .footer = "`rehearse help VERB` explains a verb and gives examples.",
          .verbs = {init_verb(),      simulate_verb(), execute_verb(), compare_verb(),    check_verb(),
                    memory_verb(),    plan_verb(),     sweep_verb(),   studio_verb(),     validate_verb(),
                    topo_verb(),      goodput_verb(),  explain_verb(), import_verb(),     export_verb(),
                    calibrate_verb(), doctor_verb(),   list_verb(),    completion_verb(), help_verb()}};
}

int refuse(const std::string& what, const std::string& verb) {
  say(stderr, "rehearse: {}\nTry: rehearse {}--help\n", what, verb.empty() ? "" : verb + " ");
  return kInvalidInput;
}

int answer(const Verb& program, std::vector<std::string> words) {
  if (answers_completion(program, words)) return kDone;
  words = without_help_verb(std::move(words));
  const Verb* const verb = words.empty() ? nullptr : program.find_verb(words[0]);
  if (!words.empty() && !words[0].starts_with('-') && verb == nullptr) {
    UsageError error(fmt::format("there is no verb \"{}\"", words[0]));
    error.unknown = {words[0]};
    throw error;
  }
  if (const std::string message = empty_value(words); !message.empty())
    return refuse(message, verb == nullptr ? "" : verb->name);
  return parse_and_run(program, std::move(words));
}

int run(int argc, char** argv) {
  const Verb all = program();
  try {
    return answer(all, {argv + 1, argv + argc});
  } catch (const UsageError& error) {
    std::string verb;
    for (const Verb* each : error.chosen) verb += (verb.empty() ? "" : " ") + each->name;
    return refuse(error.what() + suggestion(all, error), verb);
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

// A standard stream that the shell closed must stay unwritable. Otherwise the next opened file would get its
// number, and messages would go into that file.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", O_RDONLY);  // takes the lowest number: this one
}

// Flushes the output; the program fails when it was not written.
int after_printing(int exit_code) {
  if (std::cout.flush() && std::fflush(stdout) == 0) return exit_code;
  if (exit_code != kFailure) say(stderr, "rehearse: cannot write to standard output\n");
  return exit_code == kDone ? kFailure : exit_code;
}

}  // namespace

}  // namespace rehearse

int main(int argc, char** argv) {
  rehearse::keep_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is a write error
  rehearse::end_when_interrupted();
  rehearse::remember_command(argc, argv);
  return rehearse::after_printing(rehearse::run(argc, argv));
}
