#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "frameworks/olmo_core_network.h"
#include "frameworks/olmo_core_plan.h"
#include "frameworks/python_configuration.h"
#include "frameworks/python_recipe.h"
#include "frameworks/python_values.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

namespace tables {
extern const std::string_view kOlmoCorePy;  // embedded
}

namespace {

bool is_experiment(const Json& config) {
  return config.is_object() && config.contains("train_module") && config["train_module"].is_object();
}

// A script that hands no configuration to main(): names where it is made.
[[noreturn]] void refuse(const PythonFile& python, const std::string& text, const std::string& file) {
  constexpr const char* kRule = "builds no configuration of an experiment with a train_module";
  if (text.find("olmo_core.internal.ladder") != std::string::npos)
    throw InputError(
        {file, "",
         "is a ladder of models: OLMo-core makes the configuration from the size on its command line",
         "src/olmo_core/model_ladder is not read",
         "rehearse simulate --model config.json --framework torchtitan, with the run's degrees"});
  const auto& methods = python.class_methods();
  const std::string name = methods.empty() ? "FUNCTION" : methods.front();
  throw InputError({file, "", kRule, "",
                    fmt::format("rehearse import {} {}, which returns {}", file, name,
                                methods.empty() ? "an ExperimentConfig" : "an object of its class")});
}

// The configuration of the function that the user names. Without a name, the one that the script hands to
// main(), or that its own build_config() returns.
PythonResult experiment_of(const std::string& text, const std::string& file, const ImportRequest& request) {
  ShellInputs inputs = request.shell;
  if (request.gpus > 0) inputs.variables.emplace("get_world_size", std::to_string(request.gpus));
  const PythonFile python(text, file, inputs, std::string(tables::kOlmoCorePy));
  if (!request.shell.arguments.empty()) {
    PythonResult found = python.call(request.shell.arguments.front());
    if (is_experiment(found.json)) return found;
    throw InputError({file, "", "builds no configuration of an experiment with a train_module",
                      "found " + found.json.dump().substr(0, 100), "name another function"});
  }
  PythonResult found = python.run();
  if (is_experiment(found.json)) return found;
  for (const char* name : {"build_experiment_config", "build_config"})
    if (std::ranges::count(python.functions(), name) > 0) found = python.call(name);
  found.open_parameters.clear();  // the command line of OLMo-core gives them
  if (is_experiment(found.json)) return found;
  refuse(python, text, file);
}

// "train_module.dp_config.shard_degree=32", which a run of OLMo-core takes behind "--" (config.py, merge).
void merge_words(const std::map<std::string, std::string>& words, Json& experiment) {
  for (const auto& [name, value] : words)
    if (name.find('.') != std::string::npos) set_at_path(experiment, name, plain_yaml(value));
}

// Enumerations as words, and the class of an optimizer or callback as its "type".
Json plain(const Json& value, const std::string& key) {
  if (value.is_string() && !is_open_python(value)) {
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
  if (key == "optim" && !made_by(value).empty()) found["type"] = olmo_core_word(made_by(value));
  return found;
}

}  // namespace

Imported import_olmo_core(const std::string& text, const std::string& file, const ImportRequest& request) {
  PythonResult found = experiment_of(text, file, request);
  merge_words(request.shell.variables, found.json);
  if (!is_experiment(found.json))
    throw InputError({file, "train_module", "must be a map", "", "train_module.rank_microbatch_size=TOKENS"});
  YamlText yaml;
  yaml.json = plain(found.json, "");
  yaml.lines = std::move(found.lines);
  Imported imported = olmo_core_plan(found, yaml, file, request);
  imported.notes.insert(imported.notes.begin(), found.notes.begin(), found.notes.end());
  return imported;
}

}  // namespace rehearse
