#include "frameworks/python_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/utf8.h"
#include "frameworks/python_process.h"

namespace rehearse {

namespace {

constexpr const char* kOpen = "?";
constexpr const char* kOnlyFunction = "?";

bool is_open(const Json& value) {
  if (!value.is_object() || !value.contains(kOpen)) return false;
  const Json& found = value[kOpen];
  return found.is_array() && found.size() == 2 && found[0].is_string() && found[1].is_number_integer();
}

std::string joined_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// A word of the command line as Python would read it in a file: 8, 1e-5, true; else text.
Json values_of(const std::map<std::string, std::string>& words) {
  Json values = Json::object();
  for (const auto& [name, word] : words) {
    const Json value = plain_yaml(word);
    values[name] = value.is_structured() ? Json(word) : value;
  }
  return values;
}

Json request_of(const std::string& text, const std::string& file, const ShellInputs& inputs,
                const std::string& function, bool is_script) {
  for (const std::string& each : {text, function})
    if (!is_utf8(each)) throw InputError({file, "", "must be UTF-8 text", "", ""});
  Json request = {{"text", text},
                  {"sources", Json::object()},
                  {"function", function == kOnlyFunction ? Json() : Json(function)},
                  {"script", is_script},
                  {"given", values_of(inputs.variables)}};
  for (const auto& [name, source] : inputs.files)
    if (name.ends_with(".py")) {
      if (!is_utf8(source)) throw InputError({name, "", "must be UTF-8 text", "", ""});
      request["sources"][name] = source;
    }
  return request;
}

// Words of the command line for open settings, by their path or its last step.
void decide_by_words(const std::map<std::string, std::string>& words, PythonSettings& settings) {
  std::set<std::string> used;
  std::erase_if(settings.open, [&](const OpenSetting& open) {
    auto word = words.find(open.path);
    if (word == words.end()) word = words.find(open.path.substr(open.path.find_last_of('.') + 1));
    if (word == words.end() || open.path.find('[') != std::string::npos) return false;
    set_at_path(settings.json, open.path, plain_yaml(word->second));
    used.insert(word->first);
    return true;
  });
  std::erase_if(settings.unused, [&](const std::string& name) { return used.contains(name); });
  for (const std::string& name : settings.unused)
    settings.notes.push_back(
        fmt::format("{}=... is not used: the file decides the value, or does not name it", name));
}

std::vector<std::string> of_users(const std::vector<std::string>& functions) {
  std::vector<std::string> names;
  for (const std::string& each : functions)
    if (!each.starts_with('_') && each.find('.') == std::string::npos) names.push_back(each);
  return names;
}

// `name`: that the user names; kOnlyFunction of a file that has to have one alone.
[[noreturn]] void refuse_function(const std::string& name, const std::vector<std::string>& all,
                                  const std::string& file) {
  const std::vector<std::string> names = of_users(all);
  if (name == kOnlyFunction && names.empty())
    throw InputError({file, "", "has no function that builds a configuration", "",
                      "the file that defines it, with others as --source FILE"});
  if (name == kOnlyFunction)
    throw InputError({file, "", "has several functions: one of them must be named",
                      fmt::format("found {} functions", names.size()),
                      fmt::format("rehearse import {} {}, or {}", file, names.front(),
                                  join({names.begin() + 1, names.end()}).substr(0, 400))});
  const std::string near = nearest_name(name, all);
  throw InputError(
      {file, "", "has no function " + name, "", near.empty() ? join(names).substr(0, 400) : near});
}

}  // namespace

PythonSettings python_settings(const std::string& text, const std::string& file, const ShellInputs& inputs,
                               const std::string& function, bool is_script) {
  PythonSettings settings =
      settings_of_answer(ask_python(request_of(text, file, inputs, function, is_script), file), file);
  if (!function.empty() && settings.function.empty()) refuse_function(function, settings.functions, file);
  decide_by_words(inputs.variables, settings);
  return settings;
}

PythonSettings settings_of_answer(const Json& answer, const std::string& file) {
  if (answer.contains("error"))
    throw InputError({file, answer["line"] > 0 ? fmt::format("line {}", answer["line"].get<int>()) : "",
                      answer["error"].get<std::string>(), "", way_out_of_python()});
  PythonSettings settings;
  settings.json = answer["result"];
  for (const auto& [pointer, line] : answer["lines"].items()) settings.lines[pointer] = line.get<int>();
  take_open(settings.json, "", settings.open);
  for (OpenSetting& open : settings.open) {
    std::string pointer = "/" + open.path;
    std::ranges::replace(pointer, '.', '/');
    const auto line = settings.lines.find(pointer);
    if (open.line == 0 && line != settings.lines.end()) open.line = line->second;
  }
  answer["missing"].get_to(settings.missing);
  answer["function"].get_to(settings.function);
  answer["functions"].get_to(settings.functions);
  answer["imports"].get_to(settings.imports);
  answer["calls"].get_to(settings.calls);
  answer["unused"].get_to(settings.unused);
  return settings;
}

PythonSettings python_configuration(const std::string& text, const std::string& file,
                                    const ImportRequest& request, bool takes_base) {
  const auto& words = request.shell.arguments;
  PythonSettings found =
      python_settings(text, file, request.shell, words.empty() ? kOnlyFunction : words.front());
  const std::string& function = found.function;
  if (!found.open.empty() && found.open.front().path.empty())
    throw InputError({file, fmt::format("line {}", found.open.front().line),
                      fmt::format("the result of {}() is not decided", function), found.open.front().why,
                      way_out_of_python()});
  const std::string made = made_by(found.json);
  if (!found.json.is_object() || (made.empty() && !takes_base))
    throw InputError({file, "", fmt::format("{}() makes no configuration", function),
                      found.json.dump().substr(0, 100), "name another function"});
  if (!takes_base && !is_python_class(made))
    throw InputError({file, "",
                      "begins with a configuration that another file makes, so its values are not known",
                      fmt::format("found {}()", made),
                      fmt::format("rehearse import {} {} --source FILE, which defines it; or {}", file,
                                  function, way_out_of_python())});
  return found;
}

std::string made_by(const Json& value) {
  return value.is_object() && value.contains(kPythonMadeBy) && value[kPythonMadeBy].is_string()
             ? value[kPythonMadeBy].get<std::string>()
             : "";
}

bool is_python_class(const std::string& name) {
  const std::size_t begin = name.find_first_not_of('_', name.find_last_of('.') + 1);
  return begin != std::string::npos && std::isupper(static_cast<unsigned char>(name[begin])) != 0;
}

void drop_names_of_calls(Json& value) {
  if (!value.is_structured()) return;
  if (value.is_object())
    for (const char* mark : {kPythonMadeBy, "<-", "+"}) value.erase(mark);
  for (Json& each : value) drop_names_of_calls(each);
}

void take_open(Json& value, const std::string& path, std::vector<OpenSetting>& open) {
  if (is_open(value)) {
    open.push_back({path, value[kOpen][0].get<std::string>(), value[kOpen][1].get<int>()});
    value = nullptr;
    return;
  }
  for (const char* word : {".", "=>"})
    if (value.is_object() && value.contains(word)) {
      const Json name = value[word];
      value = name.is_string() ? name : Json("");
      return;
    }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) take_open(value[i], fmt::format("{}[{}]", path, i), open);
  if (!value.is_object()) return;
  std::vector<std::string> undecided;
  for (auto& [key, each] : value.items()) {
    if (is_open(each)) undecided.push_back(key);
    std::vector<OpenSetting> of_maker;  // states nothing of this object
    take_open(each, joined_path(path, key), key == "<-" ? of_maker : open);
  }
  for (const std::string& key : undecided) value.erase(key);
}

std::string note_on_open(const OpenSetting& open) {
  return open.line > 0 ? fmt::format("not decided: {} ({}), line {}", open.path, open.why, open.line)
                       : fmt::format("not decided: {} ({})", open.path, open.why);
}

Violation violation_of_open(const OpenSetting& open, const std::string& file) {
  const std::string key = open.path.substr(open.path.find_last_of('.') + 1);
  const std::string place = open.line > 0 ? fmt::format("line {}: {}", open.line, open.path) : open.path;
  return {file, place, "must have a value that the file decides", open.why,
          fmt::format("rehearse import {} ... {}=VALUE; or {}", file, key, way_out_of_python())};
}

std::string way_out_of_python() {
  return "the configuration (YAML, JSON) or the log that the run saves: rehearse import SAVED";
}

}  // namespace rehearse
