#include "scenario/schema.h"

#include "base/omitted_effect.h"
#include "scenario/flags.h"

namespace rehearse {

namespace {

Json array_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json named(const std::vector<std::string>& words) {
  return {{"enum", words}};
}

Json axes() {
  std::vector<std::string> words;
  for (const Axis axis : kAxes) words.push_back(to_string(axis));
  Json list = array_of(named(words));
  list["minItems"] = list["maxItems"] = words.size();
  return list;
}

Json layers() {
  return array_of({{"type", "integer"}, {"minimum", 0}});
}

// The field's type in a report: with every default filled in.
struct ReportedType {
  Json operator()(const IntegerField& field) const {
    return {{"type", "integer"}, {"minimum", field.min}, {"maximum", field.max}};
  }
  Json operator()(const NumberField& field) const {
    return {{"type", "number"}, {"minimum", field.min}, {"maximum", field.max}};
  }
  Json operator()(const BytesField&) const {
    return {{"type", "number"}, {"minimum", physical::kBytes.least}, {"maximum", physical::kBytes.most}};
  }
  Json operator()(const SwitchField&) const { return {{"type", "boolean"}}; }
  Json operator()(const ChoiceField& field) const { return named(field.words); }
  Json operator()(const ChoicesField& field) const { return array_of(named(field.words)); }
  Json operator()(const AxesField&) const { return axes(); }
  Json operator()(const LayersField&) const { return layers(); }
  Json operator()(ShorthandField) const { return nullptr; }
};

Json type_of(FlagKind kind) {
  switch (kind) {
    case FlagKind::integer:
      return {{"type", "integer"}};
    case FlagKind::number:
      return {{"type", "number"}};
    case FlagKind::on_off:
      return {{"type", "boolean"}};
    case FlagKind::text:
    case FlagKind::layers:
      break;
  }
  return {{"type", "string"}};
}

// The field's type in a scenario.
struct WrittenType : ReportedType {
  using ReportedType::operator();
  Json operator()(const BytesField&) const { return {{"type", "string"}}; }
  Json operator()(const ChoicesField& field) const {
    return {{"anyOf", {ReportedType::operator()(field), {{"type", "string"}}}}};
  }
  Json operator()(const AxesField&) const { return {{"anyOf", {{{"type", "string"}}, axes()}}}; }
  Json operator()(const LayersField&) const { return {{"anyOf", {{{"const", "auto"}}, layers()}}}; }
  Json operator()(ShorthandField field) const {
    if (field == ShorthandField::text) return {{"type", "string"}};
    return type_of(field == ShorthandField::integer ? FlagKind::integer : FlagKind::on_off);
  }
};

void explain(Json& property, const FieldText& field, const std::string& by_default) {
  property["description"] = field.help;
  property["x-flag"] = field.flag;
  property["x-group"] = heading(field.group);
  if (!by_default.empty()) property["x-default"] = by_default;
}

// A schedule has other names too, and may be a file. A framework may have its version after an @.
Json written(const PlanField& field) {
  const std::string_view key = field.key;
  Json property = key == "schedule" || key == "framework" ? Json{{"type", "string"}}
                                                          : std::visit(WrittenType{}, field.type);
  explain(property, field, default_text(field));
  return property;
}

Json plan_properties() {
  Json properties = Json::object();
  for (const PlanField& field : plan_fields()) properties[field.key] = written(field);
  properties["bucket_bytes"] = {{"type", "number"}, {"description", "bucket, as a report says it"}};
  properties["microbatches"] = {{"type", "integer"},
                                {"description", "global_batch / (micro_batch x dp), as a report says it"}};
  return properties;
}

// A model may be an inline object.
Json type_of(const RunField& field) {
  if (field.key != std::string_view("model")) return type_of(field.kind);
  return {{"anyOf", {{{"type", "string"}}, {{"type", "object"}}}}};
}

Json object_of(Json properties) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"patternProperties", {{"^_", {{"description", "a comment"}}}}},
          {"additionalProperties", false}};
}

Json omitted_effect() {
  Json row = object_of({{"option", {{"type", "string"}}},
                        {"counted", {{"type", "string"}, {"description", "in its place"}}},
                        {"changes", array_of(named(cost_changes()))}});
  row["required"] = {"option", "counted", "changes"};
  return row;
}

}  // namespace

Json reported_plan_schema() {
  Json properties = Json::object();
  for (const PlanField& field : plan_fields()) {
    if (std::holds_alternative<ShorthandField>(field.type)) continue;
    const bool bytes = std::holds_alternative<BytesField>(field.type);
    properties[field.key + std::string(bytes ? "_bytes" : "")] = std::visit(ReportedType{}, field.type);
  }
  properties["schedule"] = {{"type", "string"}};  // a file's order has the file's name
  return properties;
}

Json scenario_schema() {
  Json properties = {
      {"schema", {{"const", "rehearse.scenario/1"}, {"description", "the version of this format"}}},
      {"title", {{"type", "string"}, {"description", "a name for people"}}},
      {"notes", array_of({{"type", "string"}})}};
  properties["notes"]["description"] = "texts that every answer repeats, such as those of an import";
  properties["omitted_effects"] = array_of(omitted_effect());
  properties["omitted_effects"]["description"] =
      "options of a launch file that are not counted and can change memory or step time by more than 10 %: "
      "every answer names them in its first line";
  for (const RunField& field : run_fields()) {
    properties[field.key] = type_of(field);
    explain(properties[field.key], field, field.by_default);
  }
  properties["cluster_changes"] = {
      {"type", "object"},
      {"description", "figures of the cluster's file that this run changes, by their place"}};
  properties["plan"] = object_of(plan_properties());
  properties["plan"]["description"] = "how the run is split, and what its kernels and messages do";
  Json schema = {
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "rehearse.scenario/1"},
      {"description", "One training run: model, cluster, plan, conditions. `rehearse init` writes one."}};
  schema.update(object_of(std::move(properties)));
  return schema;
}

}  // namespace rehearse
