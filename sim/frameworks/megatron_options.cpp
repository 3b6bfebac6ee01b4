#include "frameworks/megatron_options.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

namespace rehearse {

namespace tables {
extern const std::string_view kMegatronOptionsJson;  // embedded
}

namespace {

template <typename Value>
Value in_table(const std::map<std::string, Value>& values, const std::string& word) {
  const auto found = values.find(word);
  if (found == values.end()) throw std::logic_error("megatron_options.json: no such word: " + word);
  return found->second;
}

MegatronOption option_of(const nlohmann::json& row) {
  static const std::map<std::string, OptionRole> roles = {{"field", OptionRole::field},
                                                          {"combined", OptionRole::combined},
                                                          {"shape", OptionRole::shape},
                                                          {"free", OptionRole::free},
                                                          {"unmodelled", OptionRole::unmodelled}};
  static const std::map<std::string, OptionTakes> kinds = {{"switch", OptionTakes::nothing},
                                                           {"integer", OptionTakes::integer},
                                                           {"number", OptionTakes::number},
                                                           {"text", OptionTakes::text},
                                                           {"list", OptionTakes::list}};
  MegatronOption option;
  option.names = row.at("names").get<std::vector<std::string>>();
  option.arguments = {row.at("dest").get<std::string>()};
  option.negates = row.value("negates", false);
  option.takes = in_table(kinds, row.at("takes").get<std::string>());
  option.open = row.value("open", false);
  option.many = row.value("many", "");
  for (const char* key : {"choices", "also"})
    for (const std::string& choice : row.value(key, std::vector<std::string>()))
      option.choices.push_back(choice);
  option.role = in_table(roles, row.at("class").get<std::string>());
  option.pointer = row.value("field", "");
  option.off = row.value("value", "") == "off";
  option.unless = row.value("unless", "");
  option.effect = row.value("effect", "");
  option.changes = row.value("changes", "");
  if (row.contains("default"))
    option.defaults = row["default"].is_array() ? row["default"].get<std::vector<std::string>>()
                                                : std::vector{row["default"].get<std::string>()};
  return option;
}

// "1.0" is "1".
bool is_same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && *end_a == '\0' && *end_b == '\0' && x == y;
}

// Other names of an option that the table has already.
void add_names(const nlohmann::json& row, std::vector<MegatronOption>& all) {
  const auto option = std::ranges::find(all, row["same_as"].get<std::string>(), &MegatronOption::name);
  if (option == all.end()) throw std::logic_error("megatron_options.json: no such option: " + row.dump());
  for (const nlohmann::json& name : row.at("names")) option->names.push_back(name.get<std::string>());
  option->arguments.push_back(row.at("dest").get<std::string>());
}

using OptionIndex = std::unordered_map<std::string, std::vector<const MegatronOption*>>;

OptionIndex index_of(bool by_argument) {
  OptionIndex index;
  for (const MegatronOption& option : megatron_options()) {
    if (by_argument)
      for (const std::string& name : option.arguments) index[name].push_back(&option);
    else
      for (const std::string& name : option.names) index[name].push_back(&option);
  }
  return index;
}

}  // namespace

bool MegatronOption::is_default(const std::string& value) const {
  return std::ranges::any_of(defaults, [&](const std::string& each) { return is_same_value(value, each); });
}

const std::vector<MegatronOption>& megatron_options() {
  static const std::vector<MegatronOption> options = [] {
    std::vector<MegatronOption> all;
    const nlohmann::json table = nlohmann::json::parse(tables::kMegatronOptionsJson);
    for (const nlohmann::json& row : table.at("options"))
      if (!row.contains("same_as")) all.push_back(option_of(row));
    for (const nlohmann::json& row : table.at("options"))
      if (row.contains("same_as")) add_names(row, all);
    return all;
  }();
  return options;
}

const MegatronOption* find_megatron_option(const std::string& name) {
  static const OptionIndex index = index_of(false);
  auto found = index.find(name);
  if (found == index.end()) {
    std::string dashed = name;
    std::ranges::replace(dashed, '_', '-');
    found = index.find(dashed);
  }
  return found == index.end() ? nullptr : found->second.front();
}

std::vector<const MegatronOption*> options_of_argument(const std::string& argument) {
  static const OptionIndex index = index_of(true);
  const auto found = index.find(argument);
  return found == index.end() ? std::vector<const MegatronOption*>() : found->second;
}

const std::vector<std::string>& megatron_option_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const MegatronOption& option : megatron_options())
      all.insert(all.end(), option.names.begin(), option.names.end());
    return all;
  }();
  return names;
}

}  // namespace rehearse
