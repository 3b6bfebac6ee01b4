#include "frameworks/python_recipe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/error.h"
#include "frameworks/megatron_options.h"
#include "frameworks/yaml_dialects.h"

namespace rehearse {

namespace {

// Values without which no step is known. `keys`: of the sections, any of which decides it.
struct NeededOfRecipe {
  std::array<const char*, 3> keys;
  const char* pointer;
  const char* flag;
};
constexpr std::array kNeededOfRecipe = {
    NeededOfRecipe{{"model.tensor_model_parallel_size", "", ""}, "/plan/tp", "--tp"},
    NeededOfRecipe{{"model.pipeline_model_parallel_size", "", ""}, "/plan/pp", "--pp"},
    NeededOfRecipe{{"train.micro_batch_size", "", ""}, "/plan/micro_batch", "--mbs"},
    NeededOfRecipe{{"train.global_batch_size", "", ""}, "/plan/global_batch", "--gbs"},
    NeededOfRecipe{
        {"model.seq_length", "dataset.seq_length", "dataset.sequence_length"}, "/plan/seq", "--seq"},
    NeededOfRecipe{{"precision", "mixed_precision", "model.bf16"}, "/plan/precision", "--precision"}};

// Values and sections that a function of another module makes. Values are open; the file may set parts of
// sections.
void open_calls(Json& value, const std::string& path, PythonSettings& found) {
  if (!value.is_object()) return;
  std::vector<std::string> values;
  for (auto& [key, each] : value.items()) {
    const std::string made = made_by(each), own = path.empty() ? key : path + "." + key;
    if (key == "<-" || key == "+") continue;
    if (!made.empty() && !is_python_class(made) && !path.empty() && !options_of_argument(key).empty()) {
      std::string pointer = "/" + own;
      std::ranges::replace(pointer, '.', '/');
      const auto line = found.lines.find(pointer);
      found.open.push_back({own, made + "() makes it", line == found.lines.end() ? 0 : line->second});
      values.push_back(key);
    } else if (!made.empty() && !is_python_class(made) && key != "mixed_precision" && key != "model") {
      found.notes.push_back(
          fmt::format("not decided: what {}() sets in {}: Megatron-LM's defaults are counted", made, own));
    }
    open_calls(each, own, found);
  }
  for (const std::string& key : values) value.erase(key);
}

bool has_base(const PythonSettings& found) {
  return !is_python_class(made_by(found.json));
}

bool is_needed(const std::string& path) {
  static const std::set<std::string> sections = {
      "model", "train", "ddp", "optimizer", "mixed_precision", "comm_overlap", "dataset", "trainer", "data"};
  const std::string key = path.substr(path.find_last_of('.') + 1);
  if (sections.contains(path) || key == "**" || key == "strategy") return true;
  const auto options = options_of_argument(key);
  return std::ranges::any_of(options,
                             [](const MegatronOption* each) { return each->role != OptionRole::free; });
}

// The flag of the command line that gives the value instead.
bool is_given(const std::string& path, const SaidOverFile& over) {
  const std::string key = path.substr(path.find_last_of('.') + 1);
  return std::ranges::any_of(kNeededOfRecipe, [&](const NeededOfRecipe& each) {
    return over.contains(each.pointer) && std::ranges::any_of(each.keys, [&](const char* own) {
             return std::string_view(own).ends_with("." + key);
           });
  });
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

void note_on_recipe(PythonSettings& found) {
  open_calls(found.json, "", found);
  for (const OpenSetting& each : found.open)
    if (!is_needed(each.path)) found.notes.push_back(note_on_open(each));
  if (!has_base(found) || made_by(found.json).empty()) return;
  std::vector<std::string> arguments;
  for (const auto& [key, value] : found.json.items())
    if (!value.is_structured() && key != kPythonMadeBy) arguments.push_back(key);
  found.notes.push_back(
      fmt::format("not decided: what {}() sets beside the file's own values{}; {}", made_by(found.json),
                  arguments.empty() ? "" : ", with its arguments " + join(arguments), way_out_of_python()));
}

void require_decided_recipe(const PythonSettings& found, const Json& sections, const std::string& file,
                            const ImportRequest& request) {
  std::vector<Violation> violations;
  for (const OpenSetting& each : found.open)
    if (is_needed(each.path) && !is_given(each.path, request.over))
      violations.push_back(violation_of_open(each, file));
  std::string keys, flags;
  for (const NeededOfRecipe& each : kNeededOfRecipe) {
    const bool is_set = std::ranges::any_of(each.keys, [&](const char* key) {
      const Json* value = *key == '\0' ? nullptr : at_path(sections, key);
      return value != nullptr && !value->is_null();
    });
    const bool is_none = std::ranges::any_of(each.keys, [&](const char* key) {
      const Json* value = *key == '\0' ? nullptr : at_path(sections, key);
      return value != nullptr && value->is_null();
    });
    if (is_none && !is_set && each.flag != std::string_view("--precision") &&
        !request.over.contains(each.pointer))
      violations.push_back(
          {file, each.keys[0], "must be an int", "found None", std::string(each.flag) + " N"});
    if (is_set || is_none || request.over.contains(each.pointer) || !has_base(found)) continue;
    keys += (keys.empty() ? "" : ", ") + std::string(each.keys[0]);
    flags += fmt::format(" {} {}", each.flag, each.flag == std::string_view("--precision") ? "bf16" : "N");
  }
  if (!keys.empty())
    violations.push_back(
        {file, "", made_by(found.json) + "() decides values that shape the step", keys,
         fmt::format("--source FILE, which defines it;{}; or {}", flags, way_out_of_python())});
  if (!violations.empty()) throw InputError(std::move(violations));
}

Imported import_bridge_python(const std::string& text, const std::string& file,
                              const ImportRequest& request) {
  return import_bridge_settings(python_configuration(text, file, request, true), file, request);
}

Imported import_bridge_settings(PythonSettings found, const std::string& file, const ImportRequest& request) {
  note_on_recipe(found);
  // "AutoBridge.from_hf_pretrained('x').get_model_config()": the object whose method made the model names it.
  const Json model = found.json.value("model", Json::object());
  const Json& source = model.contains("<-") ? model["<-"] : model;
  if (source.is_object() && source.contains("0") && source["0"].is_string())
    found.notes.push_back(fmt::format("the network is that of {}: pass --model NAME|config.json",
                                      source["0"].get<std::string>()));
  // A recipe of precision is a call, or the name that it is given; its own fields come behind.
  const Json precision = found.json.value("mixed_precision", Json());
  if (const std::string name = made_by(precision); !name.empty()) {
    const bool is_named = precision.contains("0") && precision["0"].is_string();
    found.json["precision"] = is_named ? precision["0"] : Json(name.substr(name.find_last_of('.') + 1));
    found.json["mixed_precision"].erase("0");
  }
  require_decided_recipe(found, found.json, file, request);
  drop_names_of_calls(found.json);
  if (found.json.contains("model") && found.json["model"].is_object()) found.json["model"].erase("0");
  YamlText yaml;
  yaml.json = std::move(found.json);
  yaml.lines = std::move(found.lines);
  Imported imported = import_yaml_dialect(yaml_dialect("megatron-bridge"), yaml, file, request);
  imported.notes.insert(imported.notes.begin(), found.notes.begin(), found.notes.end());
  return imported;
}

}  // namespace rehearse
