#include "model/read.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/data_path.h"
#include "base/json_kind.h"
#include "base/json_text.h"
#include "base/names.h"
#include "base/text_file.h"
#include "model/as.h"
#include "model/families.h"
#include "model/repository.h"
#include "model/text_part.h"

namespace rehearse {

namespace {

constexpr const char* kFolder = "scenarios/models";

// Python writes Infinity, -Infinity and NaN, which JSON does not have. They become strings, which no reader
// accepts as numbers.
std::string with_constants_quoted(const std::string& text) {
  std::string result;
  bool inside = false;  // inside a string
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\' && i + 1 < text.size()) {
      result += text[i++];
    } else if (text[i] == '"') {
      inside = !inside;
    } else if (!inside) {
      for (const std::string_view constant : {"Infinity", "-Infinity", "NaN"}) {
        if (text.compare(i, constant.size(), constant) != 0) continue;
        result += fmt::format("\"{}\"", constant);
        i += constant.size();
        break;
      }
    }
    if (i < text.size()) result += text[i];
  }
  return result;
}

// A nested object keeps this many keys. A larger object is a table that no formula reads: the layers of a
// quantized checkpoint, or the names of a classifier's labels.
constexpr std::int64_t kKeptKeys = 1000;

JsonReader open_config(const std::string& file) {
  JsonLimits limits;
  limits.kept_keys = kKeptKeys;
  return JsonReader(parse_json(with_constants_quoted(read_text_file(file, limits.bytes)), file, limits),
                    file);
}

// A warning where "architectures" and "model_type" disagree. The type decides, but another class may compute
// another network.
std::vector<std::string> other_architectures(const JsonReader& config, const ModelFamily& family) {
  if (!config.has("model_type") || !config.has("architectures")) return {};
  const Json& architectures = config.value("architectures");
  const auto is_family = [&](const Json& name) {
    return name.is_string() && std::ranges::any_of(families(), [&](const ModelFamily& other) {
             return other.reads_like(family) &&
                    std::ranges::find(other.classes, name.get<std::string>()) != other.classes.end();
           });
  };
  if (architectures.is_array() && std::ranges::all_of(architectures, is_family)) return {};
  return {fmt::format("architectures {} disagrees with model_type \"{}\": ignored, the model is read as {}",
                      architectures.dump(), family.model_type,
                      family.classes.empty() ? family.model_type : family.classes.front())};
}

// A downloaded model's file is always config.json, so its folder names the model.
std::string name_of(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string folder = path.parent_path().filename().string();
  return path.stem() == "config" && !folder.empty() && folder != "." ? folder : stem_of(file);
}

// The configuration in this folder; "" where there is none.
std::string config_in(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder).lexically_normal() / "config.json";
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? file.string() : "";
}

Model read_parts(const FamilyConfig& config) {
  if (config.family().reader == "megatron_gpt") return read_megatron_gpt(config);
  if (config.family().reader == "block_list") return read_block_list(config);
  if (config.family().reader == "nemotron_h") return read_nemotron_h(config);
  if (config.family().reader == "nas") return read_nas(config);
  return read_family(config);
}

// `whole`: the whole file, of which `config` may be the language model's part.
Model read_config_of(const FamilyConfig& config, const std::string& name, const Json& whole) {
  Model model = read_parts(config);
  model.name = name;
  for (std::string& doubt : doubtful_values(config.file(), model)) model.warnings.push_back(std::move(doubt));
  for (std::string& key : unmodelled_keys(config.file(), model)) model.not_modelled.push_back(std::move(key));
  model.towers = read_towers(whole, model.hidden);
  std::sort(model.not_modelled.begin(), model.not_modelled.end());
  const auto repeated = std::unique(model.not_modelled.begin(), model.not_modelled.end());
  model.not_modelled.erase(repeated, model.not_modelled.end());
  require_valid(model, config.file().file());
  return model;
}

}  // namespace

std::string model_file(const std::string& name_or_path) {
  const std::vector<std::string> known = model_names();
  const bool is_known = std::ranges::find(known, name_or_path) != known.end();
  if (!is_known && !is_stream(name_or_path)) {
    if (const std::string config = config_in(name_or_path); !config.empty()) return config;
    if (!why_unreadable(name_or_path).empty()) refuse_repository(name_or_path);
  }
  return find_data_file("model", kFolder, name_or_path);
}

Model read_model(const std::string& name_or_path, const std::string& as) {
  const std::string file = model_file(name_or_path);
  const JsonReader whole = open_config(file);
  require_kind(whole.json(), file, JsonKind::model);
  const JsonReader text = text_part(whole);
  if (!as.empty()) {
    const FamilyConfig config(text, family_named(as, file));
    Model model = read_config_of(config, name_of(file), whole.json());
    model.warnings.push_back(keys_read_as(text, config));
    return model;
  }
  const FamilyConfig config(text, family_of(text));
  Model model = read_config_of(config, name_of(file), whole.json());
  for (std::string& doubt : other_architectures(text, config.family()))
    model.warnings.push_back(std::move(doubt));
  return model;
}

Model read_inline_model(const Json& json, const std::string& file, const std::string& pointer) {
  const JsonReader text = text_part(JsonReader(json, file, pointer));
  const FamilyConfig config(text, family_of(text));
  Model model = read_config_of(config, config.file().text_or("name", "model"), json);
  for (std::string& doubt : other_architectures(text, config.family()))
    model.warnings.push_back(std::move(doubt));
  if (config.family().reader == "megatron_gpt") config.file().reject_unknown();
  return model;
}

std::vector<std::string> unread_keys(const Json& json, const std::string& file) {
  const JsonReader text = text_part(JsonReader(json, file, ""));
  const FamilyConfig config(text, family_of(text));
  read_config_of(config, "model", json);
  return unread_keys(text, config);
}

std::vector<std::string> model_names() {
  return data_names(kFolder);
}

}  // namespace rehearse
