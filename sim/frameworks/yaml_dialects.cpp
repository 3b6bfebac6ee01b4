#include "frameworks/yaml_dialects.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "frameworks/megatron_options.h"

namespace rehearse {

namespace tables {
extern const std::string_view kYamlDialectsJson;  // embedded
}

namespace {

std::vector<YamlDialect> read_dialects() {
  std::vector<YamlDialect> all;
  const nlohmann::json table = nlohmann::json::parse(tables::kYamlDialectsJson);
  for (const nlohmann::json& row : table.at("dialects")) {
    YamlDialect dialect;
    if (row.contains("like"))
      dialect = *std::ranges::find(all, row.at("like").get<std::string>(), &YamlDialect::name);
    dialect.name = row.at("name").get<std::string>();
    dialect.what = row.at("what").get<std::string>();
    dialect.free.merge(row.at("free").get<std::set<std::string>>());
    dialect.rename.merge(row.at("rename").get<std::map<std::string, std::string>>());
    dialect.values.merge(row.at("values").get<std::map<std::string, std::map<std::string, std::string>>>());
    dialect.ignored.merge(row.at("ignored").get<std::map<std::string, std::string>>());
    if (row.contains("changes"))
      dialect.changes.merge(row.at("changes").get<std::map<std::string, std::string>>());
    if (row.contains("environment")) row.at("environment").get_to(dialect.environment);
    const nlohmann::json counted = row.value("counted", nlohmann::json::object());
    for (const auto& [key, rule] : counted.items())
      dialect.counted[key] = {rule.at(0), rule.at(1).get<std::string>()};
    if (row.contains("precisions")) row.at("precisions").get_to(dialect.precisions);
    if (row.contains("defaults")) row.at("defaults").get_to(dialect.defaults);
    dialect.defaults_of = row.value("defaults_of", dialect.defaults_of);
    dialect.unnamed = row.value("unnamed", dialect.unnamed);
    all.push_back(std::move(dialect));
  }
  return all;
}

bool has_section(const Json& yaml, const char* key) {
  return yaml.contains(key) && yaml[key].is_object();
}

bool names_options(const Json& section) {
  return std::ranges::any_of(section.items(), [](const auto& entry) {
    const MegatronOption* option = find_megatron_option("--" + entry.key());
    return option != nullptr && option->role != OptionRole::free;
  });
}

}  // namespace

const YamlDialect& yaml_dialect(const std::string& name) {
  static const std::vector<YamlDialect> dialects = read_dialects();
  const auto found = std::ranges::find(dialects, name, &YamlDialect::name);
  if (found == dialects.end()) throw std::logic_error("yaml_dialects.json: no such dialect: " + name);
  return *found;
}

std::string dialect_of(const Json& yaml) {
  if (!yaml.is_object()) return "";
  if (has_section(yaml, "modules")) return "primus";
  const bool trains =
      has_section(yaml, "train") || has_section(yaml, "ddp") || has_section(yaml, "mixed_precision");
  if (has_section(yaml, "model") && has_section(yaml, "trainer")) return "nemo";
  if (has_section(yaml, "system") && (has_section(yaml, "model") || has_section(yaml, "data")))
    return "flagscale";
  if (has_section(yaml, "experiment") && yaml["experiment"].contains("runner")) return "flagscale";
  if (has_section(yaml, "model") && trains) return "megatron-bridge";
  if (has_section(yaml, "model") && names_options(yaml["model"])) return "megatron-bridge";
  if (names_options(yaml)) return "ms-swift";
  return "";
}

}  // namespace rehearse
