#include "frameworks/python_recipe.h"

#include <fmt/core.h>

#include <array>

#include "base/error.h"
#include "frameworks/python_configuration.h"
#include "frameworks/yaml_dialects.h"

namespace rehearse {

namespace {

// Sections that a function of another module makes, and the size of a placeholder for a tokenizer.
void drop_what_is_open_python(PythonResult& found) {
  std::vector<std::string> open;
  for (const auto& [key, value] : found.json.items())
    if (is_open_python(value)) open.push_back(key);
  for (const std::string& key : open) {
    found.notes.push_back(
        fmt::format("{} is made by a function that is not read: Megatron-LM's defaults are "
                    "counted; pass --source FILE",
                    key));
    found.json.erase(key);
  }
  const Json::json_pointer words("/tokenizer/vocab_size");
  if (found.json.contains(words) && is_open_python(found.json[words]))
    found.json["tokenizer"].erase("vocab_size");
}

}  // namespace

std::string kind_of_python(const std::string& text, const std::string& file) {
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("torchtitan")) return "torchtitan";
  if (has("megatron.bridge")) return "megatron-bridge";
  if (has("nemo.collections")) return "nemo-2";
  if (has("olmo_core")) return "olmo-core";
  static constexpr std::array kOthers = {std::pair{"deepspeed", "DeepSpeed"},
                                         std::pair{"transformers", "transformers"}};
  for (const auto& [word, program] : kOthers)
    if (has(word))
      throw InputError({file, "", fmt::format("is Python of {}, which is not read", program), "",
                        "the log of a run, or the same settings as flags: rehearse help simulate"});
  return "";
}

Imported import_bridge_python(const std::string& text, const std::string& file,
                              const ImportRequest& request) {
  PythonResult found = python_configuration(text, file, request);
  const Json model = found.json.value("model", Json());
  if (model.is_object() && model.contains("0") && model["0"].is_string())
    found.notes.push_back(fmt::format("the network is that of {}: pass --model NAME|config.json",
                                      model["0"].get<std::string>()));
  // A recipe of precision is a call, or the name that it is given; its own fields come behind.
  const Json precision = found.json.value("mixed_precision", Json());
  if (const std::string name = made_by(precision); !name.empty()) {
    const bool is_named = precision.contains("0") && precision["0"].is_string();
    found.json["precision"] = is_named ? precision["0"] : Json(name.substr(name.find_last_of('.') + 1));
    found.json["mixed_precision"].erase("0");
  }
  drop_names_of_calls(found.json);
  if (found.json["model"].is_object()) found.json["model"].erase("0");
  drop_what_is_open_python(found);
  YamlText yaml;
  yaml.json = std::move(found.json);
  yaml.lines = std::move(found.lines);
  Imported imported = import_yaml_dialect(yaml_dialect("megatron-bridge"), yaml, file, request);
  imported.notes.insert(imported.notes.begin(), found.notes.begin(), found.notes.end());
  return imported;
}

}  // namespace rehearse
