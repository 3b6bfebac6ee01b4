#include "validate/switches.h"

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

constexpr std::array kParts = {"model", "plan"};  // whose keys are switches of their own

bool is_part(const std::string& key) {
  return std::ranges::find(kParts, key) != kParts.end();
}

bool is_remark(const std::string& key) {
  return key == "schema" || key == "title" || key.starts_with("_");
}

bool lists(const Json& pointers, const std::string& pointer) {
  return std::ranges::find(pointers, Json(pointer)) != pointers.end();
}

bool is_stated(const Switch& of, const Json& stated, const Json& why) {
  if (why.contains(of.pointer())) return false;
  return stated.is_null() || lists(stated, of.pointer()) || lists(stated, "/" + of.part);
}

void require_switch(const std::string& list, const std::string& pointer,
                    const std::vector<std::string>& legal) {
  if (std::ranges::find(legal, pointer) != legal.end()) return;
  throw InputError({"", list, "must name switches of the scenario by JSON pointer",
                    "found \"" + pointer + "\"", nearest_name(pointer, legal)});
}

}  // namespace

std::vector<Switch> switches_of(const Json& scenario) {
  std::vector<Switch> switches;
  for (const auto& [key, value] : scenario.items()) {
    if (is_remark(key)) continue;
    if (!is_part(key) || !value.is_object()) {
      switches.push_back({"", key});
      continue;
    }
    for (const auto& inner : value.items())
      if (!is_remark(inner.key())) switches.push_back({key, inner.key()});
  }
  return switches;
}

std::optional<Switch> switch_at(const std::string& pointer) {
  for (const std::string part : kParts)
    if (const std::string begin = "/" + part + "/";
        pointer.starts_with(begin) && pointer.size() > begin.size())
      return Switch{part, pointer.substr(begin.size())};
  return std::nullopt;
}

void require_sources(const Json& scenario, const Json& stated, const Json& why) {
  const std::vector<Switch> switches = switches_of(scenario);
  std::vector<std::string> legal;
  for (const Switch& each : switches) legal.push_back(each.pointer());
  for (const auto& item : why.items()) require_switch("/why", item.key(), legal);
  for (const std::string part : kParts)
    if (scenario.contains(part)) legal.push_back("/" + part);
  if (!stated.is_null())
    for (const Json& pointer : stated) require_switch("/stated", pointer.get<std::string>(), legal);
  for (const Switch& each : switches)
    if (!why.contains(each.pointer()) && !is_stated(each, stated, why))
      throw InputError({"", "/why", "must give the source of each switch that is not stated",
                        "no source for " + each.pointer(), "\"" + each.pointer() + "\" in stated or in why"});
}

Json stated_part(const Json& scenario, const Json& stated, const Json& why) {
  Json stated_alone = scenario;
  for (const Switch& each : switches_of(scenario))
    if (!is_stated(each, stated, why))
      (each.part.empty() ? stated_alone : stated_alone[each.part]).erase(each.key);
  return stated_alone;
}

}  // namespace rehearse
