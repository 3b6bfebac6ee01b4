#include "frameworks/yaml_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "frameworks/megatron_options.h"
#include "frameworks/shell_values.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

std::string yaml_word(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The value becomes part of a shell command, where "[moe_act, layernorm]" and "a b" are lists too.
void add_words(const std::string& text, std::vector<std::string>& values) {
  const bool is_list = text.starts_with('[') && text.ends_with(']') && text.find('*') == std::string::npos &&
                       text.find_first_of("0123456789") == std::string::npos;
  std::string plain = is_list ? text.substr(1, text.size() - 2) : text;
  if (is_list) std::ranges::replace(plain, ',', ' ');
  std::istringstream words(plain);
  for (std::string word; words >> word;) values.push_back(word);
}

// "${NAME}" and "${NAME:-4096}", which the shell of the tests expands.
std::string expanded(const std::string& text, int line, ShellValues& values) {
  return text.find('$') == std::string::npos ? text : flat(values.whole(text, line, nullptr));
}

void add_options(const YamlText& yaml, const Json& value, const std::string& pointer, ShellValues& variables,
                 ScriptFlags& found) {
  if (!value.is_object()) return;
  for (const auto& [key, below] : value.items()) {
    const std::string at = pointer + "/" + pointer_step(key);
    if (!key.starts_with("--")) {
      add_options(yaml, below, at, variables, found);
      continue;
    }
    const MegatronOption* const option = find_megatron_option(key);
    const bool is_none =
        below == "none" && option != nullptr && std::ranges::count(option->choices, "none") == 0;
    const bool is_off = below == false && (option == nullptr || !option->takes_number());
    if (below.is_null() || is_off || is_none) {
      const std::string place = fmt::format("line {}", yaml.line(at));
      const OptionFate fate = option == nullptr                  ? OptionFate::unknown
                              : option->role == OptionRole::free ? OptionFate::free
                                                                 : OptionFate::used;
      found.others.push_back({key, below.is_null() ? "null" : yaml_word(below), place, fate, "", ""});
      continue;
    }
    found.flags.push_back({key, {}, yaml.line(at)});
    std::vector<std::string>& values = found.flags.back().values;
    if (below.is_array())
      for (const Json& each : below) add_words(expanded(yaml_word(each), yaml.line(at), variables), values);
    else if (below != true)
      add_words(expanded(yaml_word(below), yaml.line(at), variables), values);
  }
}

}  // namespace

bool has_yaml_options(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line.compare(begin, 2, "--") != 0) continue;
    const std::size_t end = line.find_first_of(" \t\r:", begin);
    if (end != std::string::npos && line[end] == ':' &&
        (end + 1 == line.size() || line.find_first_of(" \t\r", end) == end + 1))
      return true;
  }
  return false;
}

ScriptFlags yaml_options(const std::string& text, const std::string& file, const ShellInputs& inputs) {
  ScriptFlags found;
  const YamlText yaml = read_yaml(text, file);
  // Beside them a test names the steps that it measures.
  const bool has_section = yaml.json.is_object() && yaml.json.contains("MODEL_ARGS");
  ShellValues variables(file, inputs);
  add_options(yaml, has_section ? yaml.json["MODEL_ARGS"] : yaml.json, has_section ? "/MODEL_ARGS" : "",
              variables, found);
  add_environment(variables_at(yaml, "/ENV_VARS"), found);
  return found;
}

}  // namespace rehearse
