#include "scenario/set_field.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"

namespace rehearse {

namespace {

const Flag* flag_at(const std::string& pointer) {
  const auto& flags = scenario_flags();
  const auto found = std::ranges::find(flags, pointer, &Flag::pointer);
  return found == flags.end() ? nullptr : &*found;
}

// "cluster.node.nics.count" points into the changes of the cluster; all other paths point directly.
std::string pointer_of(const std::string& path) {
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  constexpr std::string_view kCluster = "/cluster/";
  return pointer.starts_with(kCluster) ? "/cluster_changes/" + pointer.substr(kCluster.size()) : pointer;
}

// Whether writing there only adds keys to objects. An array would grow to any index in the pointer.
bool has_place(const Json& json, Json::json_pointer pointer) {
  if (pointer.empty() || json.contains(pointer)) return true;
  const std::string key = pointer.back();
  const auto digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  pointer.pop_back();
  const bool of_object = json.contains(pointer) ? json.at(pointer).is_object() : true;
  return of_object && key != "-" && !std::ranges::all_of(key, digit) && has_place(json, pointer);
}

}  // namespace

// A number, true or false in JSON syntax, else a text.
Json SetField::value(const std::string& one) const {
  if (flag != nullptr) return parse_value(*flag, one);
  Json value = Json::parse(one, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : Json(one);
}

SetField parse_set(const std::string& set) {
  const std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0 || !is_utf8(set))
    throw InputError({"command line", "--set", "must be FIELD=VALUE", fmt::format("found \"{}\"", set),
                      "plan.micro_batch=2"});
  const std::string path = set.substr(0, equals), pointer = pointer_of(path);
  return {path, pointer, flag_at(pointer), set.substr(equals + 1)};
}

void write_field(Json& scenario, const std::string& pointer, const Json& value, const std::string& flag) {
  const InputError no_place({"command line", flag, "is no place in a scenario", pointer, "plan.micro_batch"});
  try {
    const Json::json_pointer place(pointer);
    if (!has_place(scenario, place)) throw no_place;
    scenario[place] = value;
  } catch (const Json::exception&) {
    throw no_place;
  }
}

void reject_twice(const std::string& flag, const std::string& field) {
  throw InputError({"command line", flag, "the field is given twice", field, ""});
}

}  // namespace rehearse
