#include "frameworks/kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "frameworks/accelerate.h"
#include "frameworks/megatron_text.h"
#include "frameworks/nemo_words.h"
#include "frameworks/other_yaml.h"
#include "frameworks/primus_script.h"
#include "frameworks/python_recipe.h"
#include "frameworks/trainer_yaml.h"
#include "frameworks/yaml_dialects.h"
#include "frameworks/yaml_options.h"

namespace rehearse {

namespace {

std::string ending_of(const std::string& name) {
  const std::size_t dot = name.find_last_of('.');
  const std::size_t slash = name.find_last_of('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  std::string ending = name.substr(dot + 1);
  std::ranges::transform(ending, ending.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return ending;
}

bool is_yaml(const LaunchFile& file) {
  const std::string ending = ending_of(file.name);
  return ending == "yaml" || ending == "yml";
}

// Values that name a variable are those of the words that are handed in.
YamlText yaml_of(const LaunchFile& file, const ImportRequest& request) {
  YamlText yaml = read_yaml(file.text, file.name);
  write_out_variables(yaml.json, request.shell.variables);
  return yaml;
}

Imported of_megatron(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_megatron(file.text, file.name, request);
}

Imported of_deepspeed(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_deepspeed(JsonReader::of_text(file.text, file.name), request.gpus, request.over);
}

// A file that names the model is read twice, because the number of layers decides the cut into stages.
Imported of_torchtitan(const LaunchFile& file, const ImportRequest& request, const LayersOfModel& layers) {
  const bool is_python = ending_of(file.name) == "py";
  const PythonSettings settings =
      is_python ? python_configuration(file.text, file.name, request, false) : PythonSettings{};
  const auto read = [&](std::int64_t count) {
    return is_python ? import_torchtitan_settings(settings, file.name, request, count)
                     : import_torchtitan(file.text, file.name, request.gpus, count, request.over);
  };
  const auto named = request.over.find("/model");
  if (named != request.over.end()) return read(layers(named->second));
  Imported imported = read(0);
  return imported.scenario.contains("model") ? read(layers(imported.scenario["model"].get<std::string>()))
                                             : imported;
}

Imported of_accelerate(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_accelerate(yaml_of(file, request), file.name, request);
}

Imported of_nanotron(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_nanotron(yaml_of(file, request), file.name, request);
}

Imported of_trainer(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_trainer(yaml_of(file, request), file.name, request);
}

Imported of_llm_foundry(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_llm_foundry(yaml_of(file, request), file.name, request);
}

Imported of_maxtext(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_maxtext(yaml_of(file, request), file.name, request);
}

Imported of_verl(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  VerlScript script;
  if (is_yaml(file) || !starts_verl(file.text))
    script.settings = yaml_of(file, request);
  else
    script = verl_script(file.text, file.name, request.shell);
  Imported imported = import_verl(script.settings, file.name, request);
  imported.notes.insert(imported.notes.begin(), script.notes.begin(), script.notes.end());
  const std::string of_ray = "ray_kwargs.ray_init.runtime_env.env_vars.";
  std::erase_if(imported.options, [&](const ImportedOption& option) {
    return option.name.starts_with(of_ray) && is_of_library(option.name.substr(of_ray.size()));
  });
  for (SetVariable& each : variables_at(script.settings, "/ray_kwargs/ray_init/runtime_env/env_vars"))
    script.variables.push_back(std::move(each));
  add_environment(script.variables, imported.options, imported.notes);
  settle_fates(imported);
  return imported;
}

template <typename Name>
Imported of_dialect(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_yaml_dialect(yaml_dialect(Name::text), yaml_of(file, request), file.name, request);
}
struct Bridge {
  static constexpr const char* text = "megatron-bridge";
};
struct Nemo {
  static constexpr const char* text = "nemo";
};
struct FlagScale {
  static constexpr const char* text = "flagscale";
};
struct Swift {
  static constexpr const char* text = "ms-swift";
};

Imported of_bridge(const LaunchFile& file, const ImportRequest& request, const LayersOfModel& layers) {
  return ending_of(file.name) == "py" ? import_bridge_python(file.text, file.name, request)
                                      : of_dialect<Bridge>(file, request, layers);
}

Imported of_nemo(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  YamlText yaml = yaml_of(file, request);
  if (nemo_words_of(yaml.json) != NemoWords::none) yaml = nested_nemo_words(yaml);
  return import_yaml_dialect(yaml_dialect(Nemo::text), yaml, file.name, request);
}

Imported of_nemo_2(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  if (is_yaml(file)) return import_nemo_words(yaml_of(file, request), file.name, request);
  return import_nemo_python(file.text, file.name, request);
}

Imported of_olmo_core(const LaunchFile& file, const ImportRequest& request, const LayersOfModel&) {
  return import_olmo_core(file.text, file.name, request);
}

// Its modules run Megatron-LM, or torchtitan with that program's sections; the model is a file of its own.
Imported primus_experiment(const YamlText& yaml, const std::string& name, const ImportRequest& request,
                           const LayersOfModel& layers) {
  const Json modules = yaml.json.is_object() ? yaml.json.value("modules", Json::object()) : Json::object();
  for (const auto& [module_name, module] : modules.items()) {
    if (!module.is_object()) continue;
    const std::string framework = module.contains("framework") && module["framework"].is_string()
                                      ? module["framework"].get<std::string>()
                                      : "";
    if (framework.empty() || framework == "megatron") continue;
    if (framework != "torchtitan")
      throw InputError({name, "modules." + module_name + ".framework", "is a framework that is not read",
                        "found " + framework, "megatron, torchtitan"});
    const Json sections = module.value("overrides", Json::object());
    const auto model = request.over.find("/model");
    Imported imported = import_torchtitan_json(
        JsonReader(sections, name, "/modules/" + module_name + "/overrides"), request.gpus,
        model == request.over.end() ? 0 : layers(model->second), request.over);
    imported.notes.push_back("modules." + module_name + ".model is a file that is not read: pass --model");
    return imported;
  }
  return import_yaml_dialect(yaml_dialect("primus"), yaml, name, request);
}

Imported of_primus(const LaunchFile& file, const ImportRequest& request, const LayersOfModel& layers) {
  if (is_yaml(file)) return primus_experiment(yaml_of(file, request), file.name, request, layers);
  PrimusScript script = primus_script(file.text, file.name, request.shell);
  ImportRequest of_script = request;
  of_script.shell = std::move(script.shell);
  Imported imported = primus_experiment(script.settings, script.experiment, of_script, layers);
  imported.notes.insert(imported.notes.begin(), script.notes.begin(), script.notes.end());
  add_environment(script.variables, imported.options, imported.notes);
  settle_fates(imported);
  return imported;
}

constexpr std::array kKinds = {
    LaunchKind{"megatron",
               "options of Megatron-LM: a line, a file, the script, model_config.yaml or log that holds them",
               of_megatron},
    LaunchKind{Bridge::text, "YAML or a recipe in Python of Megatron-Bridge", of_bridge},
    LaunchKind{Nemo::text, "YAML of NeMo 1", of_nemo},
    LaunchKind{"nemo-2", "a recipe of NeMo 2 in Python, or YAML of the words that change one", of_nemo_2},
    LaunchKind{"olmo-core", "a training script of OLMo-core in Python", of_olmo_core},
    LaunchKind{"primus", "an experiment of Primus, for Megatron-LM or torchtitan, or a script that starts it",
               of_primus},
    LaunchKind{FlagScale::text, "YAML of FlagScale", of_dialect<FlagScale>},
    LaunchKind{Swift::text, "YAML with Megatron-LM's names and underscores, as of ms-swift",
               of_dialect<Swift>},
    LaunchKind{"deepspeed", "ds_config.json", of_deepspeed},
    LaunchKind{"accelerate", "YAML of Hugging Face Accelerate, with FSDP, DeepSpeed or Megatron-LM",
               of_accelerate},
    LaunchKind{"nanotron", "YAML of nanotron", of_nanotron},
    LaunchKind{"trainer", "YAML of LLaMA-Factory, axolotl or TRL", of_trainer},
    LaunchKind{"llm-foundry", "YAML of llm-foundry", of_llm_foundry},
    LaunchKind{"maxtext", "YAML of MaxText", of_maxtext},
    LaunchKind{"verl", "YAML of verl, or a script that starts it with settings as words", of_verl},
    LaunchKind{"torchtitan", "a TOML file of torchtitan, or a registry in Python", of_torchtitan}};

const LaunchKind* kind_named(std::string_view name) {
  return std::ranges::find(kKinds, name, &LaunchKind::name);
}

DetectedKind of_python(const LaunchFile& file) {
  const std::string kind = kind_of_python(file.text, file.name);
  if (kind.empty())
    throw InputError(
        {file.name, "", "is Python of no supported framework", "",
         "a registry of torchtitan, a recipe of Megatron-Bridge or NeMo 2, a script of OLMo-core"});
  return {kind_named(kind), kind == "torchtitan"  ? "a registry of torchtitan"
                            : kind == "nemo-2"    ? "a recipe of NeMo 2"
                            : kind == "olmo-core" ? "a training script of OLMo-core"
                                                  : "a recipe of Megatron-Bridge"};
}

// The first letter of the text that is no blank.
char first_letter(const std::string& text) {
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at == std::string::npos ? '\0' : text[at];
}

// A line "[section]" or "[[table]]" and nothing else.
bool has_toml_section(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.size() > 2 && line.front() == '[' && line.back() == ']' &&
        std::isalpha(static_cast<unsigned char>(line[1])) != 0)
      return true;
  }
  return false;
}

void refuse_unread(const Json& config, const std::string& file) {
  if (const std::string program = unread_program(config); !program.empty())
    throw InputError({file, "", "is a configuration of " + program + ", which is not read", "",
                      "the same settings as flags: rehearse help simulate"});
}

DetectedKind of_json(const LaunchFile& file) {
  const JsonReader config = JsonReader::of_text(file.text, file.name);
  const Json& json = config.json();
  const auto has = [&](const char* key) { return json.contains(key); };
  if (has("model_type") || has("architectures"))
    throw InputError({file.name, "", "is a config.json of Hugging Face, which describes a model", "",
                      "rehearse simulate --model " + file.name});
  if (has("schema") && json["schema"].is_string() &&
      json["schema"].get<std::string>().starts_with("rehearse."))
    throw InputError({file.name, "", "is a file of this program", json["schema"].get<std::string>(),
                      "rehearse simulate " + file.name});
  refuse_unread(json, file.name);
  for (const char* key : {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                          "gradient_accumulation_steps", "fp16", "bf16", "zero_allow_untested_optimizer"})
    if (has(key)) return {kind_named("deepspeed"), "a configuration of DeepSpeed"};
  throw InputError(
      {file.name, "", "is JSON of no supported framework", "", "rehearse import deepspeed " + file.name});
}

DetectedKind of_yaml(const LaunchFile& file) {
  const Json yaml = read_yaml(file.text, file.name).json;
  if (is_accelerate(yaml)) return {kind_named("accelerate"), "a configuration of Accelerate"};
  if (is_nanotron(yaml)) return {kind_named("nanotron"), "a configuration of nanotron"};
  if (is_llm_foundry(yaml)) return {kind_named("llm-foundry"), "a configuration of llm-foundry"};
  if (is_maxtext(yaml)) return {kind_named("maxtext"), "a configuration of MaxText"};
  if (is_verl(yaml)) return {kind_named("verl"), "a configuration of verl"};
  if (is_trainer(yaml)) return {kind_named("trainer"), "a configuration of LLaMA-Factory, axolotl or TRL"};
  refuse_unread(yaml, file.name);
  if (const NemoWords words = nemo_words_of(yaml); words != NemoWords::none)
    return {kind_named(words == NemoWords::nemo_1 ? "nemo" : "nemo-2"), "a test of NeMo"};
  const std::string dialect = dialect_of(yaml);
  if (dialect.empty())
    throw InputError(
        {file.name, "", "is YAML of no supported framework", "", "rehearse import --help lists the kinds"});
  return {kind_named(dialect), yaml_dialect(dialect).what};
}

}  // namespace

std::span<const LaunchKind> launch_kinds() {
  return kKinds;
}

DetectedKind detect_kind(const LaunchFile& file) {
  const std::string ending = ending_of(file.name);
  if (holds_arguments(file.text))
    return {kind_named("megatron"), "the arguments that a log of Megatron-LM prints"};
  if (ending == "json" || (ending.empty() && first_letter(file.text) == '{')) return of_json(file);
  if (ending == "py") return of_python(file);
  if (ending == "toml" || (ending != "sh" && has_toml_section(file.text)))
    return {kind_named("torchtitan"), "a TOML file of torchtitan"};
  if (!is_yaml(file) && starts_verl(file.text)) return {kind_named("verl"), "a script that starts verl"};
  if (!is_yaml(file) && starts_primus(file.text, file.name))
    return {kind_named("primus"), "a script that starts Primus"};
  if (has_yaml_options(file.text)) return {kind_named("megatron"), "a model_config.yaml of Megatron-LM"};
  if (is_yaml(file)) return of_yaml(file);
  return {kind_named("megatron"), "a script or a file of options of Megatron-LM"};
}

}  // namespace rehearse
