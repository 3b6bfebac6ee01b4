#include "program.h"

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sanitized.h"
#include "scratch.h"

namespace rehearse {

namespace {

constexpr int kHangs_s = 300 * kSlower;  // of the clock, on a machine that others use

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Outcome run_program(const std::string& arguments) {
  const std::string out = scratch().file("stdout"), err = scratch().file("stderr");
  const std::string command = std::string("cd ") + SOURCE_DIR + " && HOME=" + scratch().path() +
                              " XDG_CACHE_HOME=" + scratch().file("cache") + " timeout " +
                              std::to_string(kHangs_s) + " " + REHEARSE + " " + in_scratch(arguments) + " >" +
                              out + " 2>" + err + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out), read(err)};
}

std::string in_scratch(std::string text) {
  for (std::size_t at = 0; (at = text.find("%/", at)) != std::string::npos; at += scratch().path().size())
    text.replace(at, 1, scratch().path());
  return text;
}

Outcome run_in_bash(const std::string& script) {
  return run_program("--version >/dev/null && R=" REHEARSE " bash -c '" + script + "'");
}

std::string with(const std::string& flags, const std::string& changes) {
  std::istringstream changed(changes), given(flags);
  std::set<std::string> names;
  for (std::string word; changed >> word;)
    if (word.starts_with("--")) names.insert(word);
  std::string kept;
  bool drops = false;
  for (std::string word; given >> word;) {
    if (word.starts_with("--")) drops = names.contains(word);
    if (!drops) kept += word + " ";
  }
  return kept + changes + " ";
}

nlohmann::json without_assumed(nlohmann::json report) {
  report.erase("assumed");
  nlohmann::json warnings = nlohmann::json::array();
  for (const nlohmann::json& warning : report.at("warnings"))
    if (warning.get<std::string>().find(" is assumed; ") == std::string::npos) warnings.push_back(warning);
  report["warnings"] = warnings;
  return report;
}

std::string temporary_file(const std::string& name, const std::string& text) {
  return scratch().write(name, text);
}

}  // namespace rehearse
