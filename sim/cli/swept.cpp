#include "cli/swept.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"
#include "sweep/values.h"

namespace rehearse {

namespace {

const Flag* flag_at(const std::string& pointer) {
  const auto& flags = scenario_flags();
  const auto found =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.pointer == pointer; });
  return found == flags.end() ? nullptr : &*found;
}

// "cluster.node.nics.count" lies in what changes the cluster, everything else where its path says.
std::string pointer_of(const std::string& path) {
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  constexpr std::string_view kCluster = "/cluster/";
  return pointer.starts_with(kCluster) ? "/cluster_changes/" + pointer.substr(kCluster.size()) : pointer;
}

// A number or true and false as JSON writes them, else a text.
Json parse_unflagged(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : Json(text);
}

SweptField field_of(const std::string& name, const std::string& pointer, const Flag* flag,
                    const std::string& text) {
  SweptField field{name, pointer, {}};
  for (const std::string& value : parse_values(name, text, flag && holds_commas(*flag)))
    field.values.push_back(flag ? parse_value(*flag, value) : parse_unflagged(value));
  return field;
}

SweptField parse_set(const std::string& set) {
  const std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0 || !is_utf8(set)) {
    throw InputError({"command line", "--set", "must be FIELD=VALUES", fmt::format("found \"{}\"", set),
                      "plan.micro_batch=1,2,4"});
  }
  const std::string path = set.substr(0, equals), pointer = pointer_of(path);
  return field_of(path, pointer, flag_at(pointer), set.substr(equals + 1));
}

// Whether writing there adds keys to objects at most: an array would grow to any number that its index says.
bool has_place(const Json& json, Json::json_pointer pointer) {
  if (pointer.empty() || json.contains(pointer)) return true;
  const std::string key = pointer.back();
  const auto digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  pointer.pop_back();
  const bool of_object = json.contains(pointer) ? json.at(pointer).is_object() : true;
  return of_object && key != "-" && !std::ranges::all_of(key, digit) && has_place(json, pointer);
}

void write_at(Json& json, const std::string& pointer, const Json& value, const std::string& name) {
  const InputError no_place({"command line", name, "is no place in a scenario", pointer, "plan.micro_batch"});
  try {
    const Json::json_pointer place(pointer);
    if (!has_place(json, place)) throw no_place;
    json[place] = value;
  } catch (const Json::exception&) {
    throw no_place;
  }
}

void add(Swept& swept, SweptField field, const std::string& flag) {
  const auto same = [&](const SweptField& other) { return other.pointer == field.pointer; };
  if (swept.base.flag_of.contains(field.pointer) || std::ranges::any_of(swept.grid.fields, same))
    throw InputError({"command line", flag, "the field is given twice", field.name, ""});
  if (field.values.size() == 1) {
    write_at(swept.base.json, field.pointer, field.values.front(), flag);
  } else {
    swept.grid.fields.push_back(field);
  }
  swept.base.flag_of[field.pointer] = flag;
}

}  // namespace

Swept read_swept(const GivenFlags& given, const std::vector<std::string>& sets) {
  GivenFlags file_only;
  file_only.file = given.file;
  Swept swept{collect(file_only), {}};
  if (!swept.base.json.value("plan", Json::object()).is_object())
    throw InputError({given.file, "/plan", "must be a JSON object", "", ""});
  for (const Flag& flag : scenario_flags()) {
    const auto text = given.values.find(flag.name);
    if (text == given.values.end()) continue;
    add(swept, field_of(flag.name.substr(2), flag.pointer, &flag, text->second), flag.name);
  }
  for (const std::string& set : sets) add(swept, parse_set(set), "--set");
  if (swept.grid.size() > 0) source_at(swept, 0);  // every field has its place
  return swept;
}

ScenarioSource source_at(const Swept& swept, Point point) {
  ScenarioSource source = swept.base;
  const std::vector<Json> values = swept.grid.values_at(point);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const SweptField& field = swept.grid.fields[i];
    write_at(source.json, field.pointer, values[i], field.name);
  }
  return source;
}

Json identity_of(const Swept& swept) {
  Json fields = Json::object();
  for (const SweptField& field : swept.grid.fields) fields[field.name] = field.values;
  return {{"scenario", swept.base.json}, {"fields", fields}};
}

}  // namespace rehearse
