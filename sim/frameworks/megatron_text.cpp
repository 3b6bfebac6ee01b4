#include "frameworks/megatron_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "frameworks/named_arguments.h"
#include "frameworks/yaml_options.h"

namespace rehearse {

namespace {

constexpr std::size_t kLongestScript = 1'000'000;
constexpr std::string_view kBlanks = " \t\r";

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string unquoted(std::string text) {
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return text;
}

// "[a, b]" -> its elements; another value is one.
std::vector<std::string> elements(const std::string& value) {
  if (!value.starts_with('[') || !value.ends_with(']') || value.find('*') != std::string::npos)
    return {unquoted(value)};
  std::vector<std::string> all;
  std::istringstream parts(value.substr(1, value.size() - 2));
  for (std::string part; std::getline(parts, part, ',');)
    if (!trimmed(part).empty()) all.push_back(unquoted(trimmed(part)));
  return all;
}

// The name before "......" and the value behind it, whatever a launcher writes before both.
bool is_argument(const std::string& line, std::string& name, std::string& value) {
  const std::size_t dots = line.find(" ..");
  const std::size_t end = dots == std::string::npos ? dots : line.find_first_not_of('.', dots + 1);
  if (end == std::string::npos || line[end] != ' ') return false;
  if (dots == 0) return false;
  const std::size_t begin = line.find_last_of(kBlanks, dots - 1);
  name = line.substr(begin == std::string::npos ? 0 : begin + 1,
                     dots - (begin == std::string::npos ? 0 : begin + 1));
  value = trimmed(line.substr(end));
  return !name.empty();
}

bool is_border(const std::string& line, const char* what) {
  return line.find(std::string("--- ") + what + " ---") != std::string::npos;
}

// With sequence parallelism the argument is False, and its reductions overlap nonetheless.
void drop_what_sequence_parallelism_implies(ScriptFlags& found) {
  const auto is = [](const char* name) {
    return [name](const ScriptFlag& flag) { return flag.name == name; };
  };
  if (std::ranges::any_of(found.flags, is("--sequence-parallel")))
    std::erase_if(found.flags, is("--no-async-tensor-model-parallel-allreduce"));
}

// The first block: restarts print it again.
ScriptFlags flags_of_log(const std::string& text) {
  ScriptFlags found;
  std::istringstream lines(text);
  std::string name, value;
  int number = 0;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (is_border(line, "end of arguments")) break;
    if (is_border(line, "arguments"))
      inside = true;
    else if (inside && is_argument(line, name, value))
      add_named_argument({name, elements(value), number, name}, found);
  }
  drop_what_sequence_parallelism_implies(found);
  return found;
}

}  // namespace

bool holds_arguments(const std::string& text) {
  return text.find("- arguments -") != std::string::npos;
}

ScriptFlags megatron_text(const std::string& text, const std::string& file, const ShellInputs& inputs) {
  if (!is_utf8(text)) throw InputError({file, "", "must be text in UTF-8", "", ""});
  if (holds_arguments(text)) return flags_of_log(text);
  if (has_yaml_options(text)) return yaml_options(text, file, inputs);
  if (text.size() > kLongestScript)
    throw InputError({file, "", fmt::format("a script has at most {} bytes", kLongestScript), "",
                      "a log with the arguments that Megatron-LM prints may be longer"});
  return script_flags(text, file, inputs);
}

}  // namespace rehearse
