#include "scenario/swept.h"

#include <algorithm>

#include "scenario/set_field.h"
#include "sweep/values.h"

namespace rehearse {

namespace {

SweptField values_of(const std::string& name, const SetField& set) {
  SweptField field{name, set.pointer, {}};
  for (const std::string& value :
       parse_values(name, set.text, set.flag != nullptr && holds_commas(*set.flag)))
    field.values.push_back(set.value(value));
  return field;
}

void add(Swept& swept, SweptField field, const std::string& flag) {
  const auto same = [&](const SweptField& other) { return other.pointer == field.pointer; };
  if (swept.base.flag_of.contains(field.pointer) || std::ranges::any_of(swept.grid.fields, same))
    reject_twice(flag, field.name);
  if (field.values.size() == 1) {
    write_field(swept.base.json, field.pointer, field.values.front(), flag);
  } else {
    swept.grid.fields.push_back(field);
  }
  swept.base.flag_of[field.pointer] = flag;
}

}  // namespace

Swept read_swept(const GivenFlags& given) {
  GivenFlags file_only;
  file_only.file = given.file;
  file_only.large = given.large;
  Swept swept{collect(file_only), {}};
  if (!swept.base.json.value("plan", Json::object()).is_object())
    throw InputError({given.file, "/plan", "must be a JSON object", "", ""});
  for (const Flag& flag : scenario_flags()) {
    const auto text = given.values.find(flag.name);
    if (text == given.values.end()) continue;
    const std::string name = flag.name.substr(2);
    add(swept, values_of(name, {name, flag.pointer, &flag, text->second}), flag.name);
  }
  for (const std::string& set : given.sets) {
    const SetField field = parse_set(set);
    add(swept, values_of(field.path, field), "--set");
  }
  if (swept.grid.size() > 0) source_at(swept, 0);  // checks that every field has its place
  return swept;
}

ScenarioSource source_at(const Swept& swept, Point point) {
  ScenarioSource source = swept.base;
  const std::vector<Json> values = swept.grid.values_at(point);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const SweptField& field = swept.grid.fields[i];
    write_field(source.json, field.pointer, values[i], field.name);
  }
  return source;
}

Json identity_of(const Swept& swept) {
  Json fields = Json::object();
  for (const SweptField& field : swept.grid.fields) fields[field.name] = field.values;
  return {{"scenario", swept.base.json}, {"fields", fields}};
}

}  // namespace rehearse
