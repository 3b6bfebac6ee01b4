// Which verb do the words of a command line run, with which options?
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

// Words that no verb takes, or an option with a value that it does not take.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::vector<std::string> unknown = {};          // words that nobody took
  std::vector<const Verb*> chosen = {};           // the verb and the one below it
  std::map<std::string, std::string> given = {};  // last value of each option, by its first name
};

// Fills the targets of the options and runs a verb of the program, or prints help or version. Returns the
// exit code. Throws UsageError, and what the verb throws.
int parse_and_run(const Verb& program, std::vector<std::string> words);

}  // namespace rehearse
