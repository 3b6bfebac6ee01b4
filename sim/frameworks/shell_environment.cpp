#include "frameworks/shell_environment.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

namespace rehearse {

namespace {

class Environment {
 public:
  void set(const std::string& name, const std::string& value, int line) {
    if (!is_of_library(name)) return;
    const auto known = std::ranges::find(variables_, name, &SetVariable::name);
    if (known == variables_.end())
      variables_.push_back({name, value, line});
    else
      *known = {name, value, line};
  }

  // "NAME=value", "--env=NAME=value", "--export=ALL,NAME=value".
  void set_word(const std::string& word, int line) {
    constexpr std::string_view kEnv = "--env=", kExport = "--export=";
    if (word.starts_with(kExport)) {
      std::istringstream parts(word.substr(kExport.size()));
      for (std::string part; std::getline(parts, part, ',');) set_word(part, line);
      return;
    }
    const std::string assignment = word.starts_with(kEnv) ? word.substr(kEnv.size()) : word;
    if (const std::size_t equals = assignment.find('='); equals != std::string::npos)
      set(assignment.substr(0, equals), assignment.substr(equals + 1), line);
  }

  // {"env_vars": {"NAME": "value"}}, which Ray gives to a job.
  void set_json(const std::string& word, int line) {
    const std::size_t begin = word.find('{');
    if (begin == std::string::npos || word.find("env_vars") == std::string::npos) return;
    const Json json = Json::parse(word.substr(begin), nullptr, false);
    if (!json.is_object() || !json.contains("env_vars") || !json["env_vars"].is_object()) return;
    for (const auto& [name, value] : json["env_vars"].items())
      set(name, value.is_string() ? value.get<std::string>() : value.dump(), line);
  }

  std::vector<SetVariable> in_order() && {
    std::ranges::stable_sort(variables_, {}, &SetVariable::line);
    return std::move(variables_);
  }

 private:
  std::vector<SetVariable> variables_;
};

bool is_program(const ShellWord& word) {
  return word.text.ends_with(".py") || word.text == "-m";
}

}  // namespace

std::vector<SetVariable> environment_of(const ShellRun& run, const ShellCommand& command) {
  Environment found;
  for (const auto& [name, value] : run.variables)
    if (value.size() == 1)
      found.set(name, flat(value.front()), value.front().empty() ? 0 : value.front().front().line);
  for (const ShellWord& word : command.environment) found.set_word(word.text, word.line);
  for (const ShellWord& word : command.launcher) found.set_word(word.text, word.line);
  for (const ShellWord& word : command.words) {
    found.set_json(word.text, word.line);
    if (is_program(word)) break;
    found.set_word(word.text, word.line);
  }
  return std::move(found).in_order();
}

}  // namespace rehearse
