// Runs the program as a user would and keeps its output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rehearse {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

// `arguments` as typed in a shell, in the source tree.
Outcome run_program(const std::string& arguments);

// `script`, without single quotes, in bash, with the program as $R; in the source tree.
Outcome run_in_bash(const std::string& script);

// Writes `text` to a file that lives as long as the test program and returns its path.
std::string temporary_file(const std::string& name, const std::string& text);

// `flags`, with those of `changes` in place of flags of the same name: a flag that is given twice is refused.
std::string with(const std::string& flags, const std::string& changes);

// A report of `simulate` as other verbs print it: without assumed defaults and the warnings about them.
nlohmann::json without_assumed(nlohmann::json report);

// Replaces each "%/" by the tests' own folder, so that "%/none/x" never exists.
std::string in_scratch(std::string text);

}  // namespace rehearse
