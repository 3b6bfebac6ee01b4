#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "frameworks/olmo_core_plan.h"
#include "frameworks/python_recipe.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace {

bool is_experiment(const PythonSettings& found) {
  const auto is_of_module = [](const OpenSetting& open) { return open.path.starts_with("train_module"); };
  return (found.json.is_object() && found.json.contains("train_module") &&
          found.json["train_module"].is_object()) ||
         std::ranges::any_of(found.open, is_of_module);
}

// A script that hands no configuration to main(): names where it is made.
[[noreturn]] void refuse(const PythonSettings& found, const std::string& text, const std::string& file) {
  if (text.find("olmo_core.internal.ladder") != std::string::npos)
    throw InputError(
        {file, "",
         "is a ladder of models: OLMo-core makes the configuration from the size on its command line",
         "src/olmo_core/model_ladder is not read",
         "rehearse simulate --model config.json --framework torchtitan, with the run's degrees"});
  const auto method = std::ranges::find_if(
      found.functions, [](const std::string& each) { return each.find('.') != std::string::npos; });
  const bool is_method = method != found.functions.end();
  throw InputError(
      {file, "", "builds no configuration of an experiment with a train_module", "",
       fmt::format("rehearse import {} {}, which returns {}; or {}", file, is_method ? *method : "FUNCTION",
                   is_method ? "an object of its class" : "an ExperimentConfig", way_out_of_python())});
}

// The call that takes the functions which build the parts, in the arguments of main().
const Json* builders_of(const Json& value) {
  if (value.is_object() && value.contains("train_module_config_builder")) return &value;
  if (value.is_structured())
    for (const Json& each : value)
      if (const Json* found = builders_of(each)) return found;
  return nullptr;
}

// One part of the experiment, which a function of the script builds.
void add_part(const std::string& part, PythonSettings found, PythonSettings& experiment) {
  experiment.json[part] = std::move(found.json);
  if (experiment.json[part].is_null()) experiment.json.erase(part);
  for (const auto& [pointer, line] : found.lines) experiment.lines["/" + part + pointer] = line;
  for (OpenSetting& open : found.open) {
    open.path = open.path.empty() ? part : part + "." + open.path;
    experiment.open.push_back(std::move(open));
  }
}

// src/olmo_core/internal/experiment.py, build_config: the arguments that shape a step, and the parts.
PythonSettings built(Json builders, const std::vector<std::string>& functions, const std::string& text,
                     const std::string& file, ShellInputs inputs) {
  PythonSettings experiment;
  experiment.json = Json::object();
  take_open(builders, "", experiment.open);
  for (const char* key : {"max_sequence_length", "global_batch_size"})
    if (builders.contains(key) && builders[key].is_number_integer())
      inputs.variables.emplace(key, builders[key].dump());
  constexpr std::array kArguments = {std::pair{"global_batch_size", "data_loader"},
                                     std::pair{"num_nodes", "launch"}};
  for (const auto& [key, section] : kArguments) {
    if (builders.contains(key)) experiment.json[section][key] = builders[key];
    for (OpenSetting& open : experiment.open)
      if (open.path == key) open.path = fmt::format("{}.{}", section, key);
  }
  for (const char* part : {"model", "train_module", "trainer"}) {
    const std::string key = std::string(part) + "_config_builder";
    const std::string name =
        builders.contains(key) && builders[key].is_string() ? builders[key].get<std::string>() : "";
    if (std::ranges::count(functions, name) > 0)
      add_part(part, python_settings(text, file, inputs, name, true), experiment);
    else if (std::string_view(part) == "train_module")
      experiment.open.push_back({part, key + " is no function of the file", 0});
  }
  return experiment;
}

// The configuration of the function that the user names. Without a name, the one that the script hands to
// main(), or that its own build_config() returns.
PythonSettings experiment_of(const std::string& text, const std::string& file, const ImportRequest& request) {
  ShellInputs inputs = request.shell;
  if (request.gpus > 0) inputs.variables.emplace("get_world_size", std::to_string(request.gpus));
  const std::string named = inputs.arguments.empty() ? "" : inputs.arguments.front();
  PythonSettings found = python_settings(text, file, inputs, named, true);
  if (!named.empty()) {
    if (is_experiment(found)) return found;
    throw InputError({file, "", "builds no configuration of an experiment with a train_module",
                      "found " + found.json.dump().substr(0, 100), "name another function"});
  }
  const Json calls = found.calls;
  if (const Json* builders = builders_of(calls))
    found = built(*builders, found.functions, text, file, inputs);
  for (const char* name : {"build_experiment_config", "build_config"})
    if (!is_experiment(found) && std::ranges::count(found.functions, name) > 0) {
      found = python_settings(text, file, inputs, name, true);
      found.missing.clear();  // the command line of OLMo-core gives them
    }
  if (is_experiment(found)) return found;
  refuse(found, text, file);
}

// "train_module.dp_config.shard_degree=32", which a run of OLMo-core takes behind "--" (config.py, merge).
void merge_words(const std::map<std::string, std::string>& words, PythonSettings& found) {
  for (const auto& [name, value] : words) {
    if (name == "num_nodes") {
      found.json["launch"]["num_nodes"] = plain_yaml(value);
      std::erase_if(found.notes, [](const std::string& note) { return note.starts_with("num_nodes="); });
    }
    if (name.find('.') == std::string::npos) continue;
    set_at_path(found.json, name, plain_yaml(value));
    std::erase_if(found.open, [&](const OpenSetting& open) { return open.path == name; });
  }
}

// Enumerations as words, and the class of an optimizer or callback as its "type".
Json plain(const Json& value, const std::string& key) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const std::size_t dot = text.find('.');
    const bool is_constant = dot != std::string::npos && is_python_class(text.substr(0, dot)) &&
                             text.find_first_of(" /") == std::string::npos;
    return is_constant ? Json(olmo_core_word(value)) : value;
  }
  if (!value.is_structured()) return value;
  Json found = value.is_array() ? Json::array() : Json::object();
  for (const auto& [name, each] : value.items())
    if (value.is_array())
      found.push_back(plain(each, key));
    else if (name != kPythonMadeBy)
      found[name] = plain(each, name);
  // Class methods that make one style or recipe (distributed/parallel/context_parallel.py, float8/ao.py).
  const std::string made = made_by(value);
  if (key == "cp_config" && !is_python_class(made)) found["style"] = olmo_core_word(made);
  if (key == "ao" && made.ends_with(".recommended")) found["enable_fsdp_float8_all_gather"] = true;
  if (key == "optim" && !made_by(value).empty()) found["type"] = olmo_core_word(made);
  return found;
}

// Parts that a function makes which is not read.
void open_parts(PythonSettings& found) {
  if (!found.json.is_object() || !found.json.contains("train_module")) return;
  const auto open = [&](const std::string& path, const Json& value) {
    const std::string made = made_by(value);
    if (!made.empty() && !is_python_class(made) && path != "train_module.cp_config")
      found.open.push_back({path, made + "() makes it", 0});
  };
  open("train_module", found.json["train_module"]);
  for (const auto& [key, value] : found.json["train_module"].items()) open("train_module." + key, value);
}

}  // namespace

Imported import_olmo_core(const std::string& text, const std::string& file, const ImportRequest& request) {
  return import_olmo_core_settings(experiment_of(text, file, request), file, request);
}

Imported import_olmo_core_settings(PythonSettings found, const std::string& file,
                                   const ImportRequest& request) {
  open_parts(found);
  merge_words(request.shell.variables, found);
  if (!is_experiment(found))
    throw InputError({file, "train_module", "must be a map", "", "train_module.rank_microbatch_size=TOKENS"});
  YamlText yaml;
  yaml.json = plain(found.json, "");
  yaml.lines = std::move(found.lines);
  Imported imported = olmo_core_plan(found, yaml, file, request);
  imported.notes.insert(imported.notes.begin(), found.notes.begin(), found.notes.end());
  return imported;
}

}  // namespace rehearse
