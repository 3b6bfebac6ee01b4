#include "frameworks/environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/names.h"

namespace rehearse {

namespace tables {
extern const std::string_view kEnvironmentJson;  // embedded
}

namespace {

constexpr std::size_t kLongestShown = 200;  // letters of a value

struct KnownVariable {
  std::string effect;                 // the counted behaviour; "" where the variable is free
  std::vector<std::string> defaults;  // values that mean it
  std::string changes;
};

using KnownVariables = std::map<std::string, KnownVariable>;  // a name, or the beginning of names and '*'

const KnownVariables& known_variables() {
  static const KnownVariables all = [] {
    const Json table = Json::parse(tables::kEnvironmentJson);
    KnownVariables rows;
    for (const Json& row : table.at("variables"))
      for (const Json& name : row.at("names"))
        rows[name.get<std::string>()] = {row.value("effect", ""),
                                         row.value("default", std::vector<std::string>()),
                                         row.value("changes", "")};
    return rows;
  }();
  return all;
}

// By the whole name, then by its longest beginning.
const KnownVariable* find_variable(const std::string& name) {
  const KnownVariables& all = known_variables();
  if (const auto whole = all.find(name); whole != all.end()) return &whole->second;
  for (std::size_t size = name.size(); size > 0; --size)
    if (const auto found = all.find(name.substr(0, size) + "*"); found != all.end()) return &found->second;
  return nullptr;
}

bool is_counted(const KnownVariable& known, const SetVariable& variable) {
  return variable.value.empty() || std::ranges::any_of(known.defaults, [&](const std::string& each) {
           return in_lower_case(each) == in_lower_case(variable.value);
         });
}

bool selects_attention(const std::string& name) {
  return name == "NVTE_FLASH_ATTN" || name == "NVTE_FUSED_ATTN";
}

}  // namespace

std::vector<SetVariable> variables_at(const YamlText& yaml, const std::string& pointer) {
  std::vector<SetVariable> variables;
  const Json::json_pointer place(pointer);
  if (!yaml.json.is_object() || !yaml.json.contains(place) || !yaml.json[place].is_object()) return variables;
  for (const auto& [name, value] : yaml.json[place].items())
    variables.push_back({name,
                         value.is_string() ? value.get<std::string>()
                         : value.is_null() ? ""
                                           : value.dump(),
                         yaml.line(pointer + "/" + pointer_step(name))});
  return variables;
}

bool is_of_library(const std::string& name) {
  constexpr std::size_t kLongestName = 100;
  return name.size() < kLongestName && find_variable(name) != nullptr;
}

std::string changes_by_variable(const std::string& name) {
  return is_of_library(name) ? find_variable(name)->changes : "";
}

bool unfuses_attention(const std::vector<SetVariable>& variables) {
  const auto is_off = [&](const char* name) {
    return std::ranges::any_of(
        variables, [&](const SetVariable& each) { return each.name == name && each.value == "0"; });
  };
  return is_off("NVTE_FLASH_ATTN") && is_off("NVTE_FUSED_ATTN");
}

void add_environment(const std::vector<SetVariable>& variables, std::vector<ImportedOption>& options,
                     std::vector<std::string>& notes) {
  const bool is_unfused = unfuses_attention(variables);
  std::vector<std::pair<std::string, std::vector<std::string>>> effects;
  for (const SetVariable& each : variables) {
    if (!is_of_library(each.name)) continue;
    const KnownVariable& known = *find_variable(each.name);
    const std::string place = each.line > 0 ? fmt::format("line {}", each.line) : "";
    options.push_back({each.name, each.value.substr(0, kLongestShown), place,
                       known.effect.empty() ? OptionFate::free : OptionFate::used, "", ""});
    if (known.effect.empty() || is_counted(known, each) || (is_unfused && selects_attention(each.name)))
      continue;
    auto same = std::ranges::find(effects, known.effect, [](const auto& of) { return of.first; });
    if (same == effects.end()) same = effects.insert(same, {known.effect, {}});
    same->second.push_back(each.name);
  }
  for (const auto& [effect, names] : effects)
    notes.push_back(fmt::format("{} {} ignored: {}", join(names), names.size() > 1 ? "are" : "is", effect));
}

}  // namespace rehearse
