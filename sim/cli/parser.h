// Which verb does a command line run, and with which options?
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

// Words that no verb accepts, or an option with an invalid value.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::vector<std::string> unknown = {};          // words that no verb accepted
  std::vector<const Verb*> chosen = {};           // the verb and the one below it
  std::map<std::string, std::string> given = {};  // last value of each option, by its first name
};

// Sets the targets of the options and runs a verb of the program, or prints help or version. Returns the exit
// code. Throws UsageError, and the verb's exceptions.
int parse_and_run(const Verb& program, std::vector<std::string> words);

}  // namespace rehearse
