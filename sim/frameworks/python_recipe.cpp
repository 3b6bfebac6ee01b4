#include "frameworks/python_recipe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "frameworks/python_values.h"
#include "frameworks/torchtitan_keys.h"
#include "frameworks/yaml_dialects.h"

namespace rehearse {

namespace {

// Of the functions that build a configuration, the one that the user names.
PythonResult configuration(const std::string& text, const std::string& file, const ImportRequest& request) {
  PythonFile python(text, file, request.shell);
  std::vector<std::string> names;
  for (const std::string& each : python.functions())
    if (!each.starts_with('_')) names.push_back(each);
  if (names.empty())
    throw InputError({file, "", "has no function that builds a configuration", "",
                      "the file that defines it, with others as --source FILE"});
  const bool is_named = !request.shell.arguments.empty();
  if (!is_named && names.size() > 1)
    throw InputError({file, "", "has several functions: one of them must be named",
                      fmt::format("found {} functions", names.size()),
                      fmt::format("rehearse import {} {}, or {}", file, names.front(),
                                  join({names.begin() + 1, names.end()}).substr(0, 400))});
  PythonResult found = python.call(is_named ? request.shell.arguments.front() : names.front());
  if (!found.json.is_object())
    throw InputError(
        {file, "", "builds no configuration", found.json.dump().substr(0, 100), "name another function"});
  if (const std::string made = found.json.value(kPythonMadeBy, "");
      !made.empty() && made.find('.') == std::string::npos && made.starts_with('_'))
    found.notes.push_back(
        fmt::format("{} is not defined in the file, so values that it sets are not known: pass "
                    "--source FILE",
                    made));
  return found;
}

void drop_names_of_calls(Json& value) {
  if (!value.is_structured()) return;
  if (value.is_object()) value.erase(kPythonMadeBy);
  for (Json& each : value) drop_names_of_calls(each);
}

bool is_open(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with('$');
}

// Sections that a function of another module makes, and the size of a placeholder for a tokenizer.
void drop_what_is_open(PythonResult& found) {
  std::vector<std::string> open;
  for (const auto& [key, value] : found.json.items())
    if (is_open(value)) open.push_back(key);
  for (const std::string& key : open) {
    found.notes.push_back(
        fmt::format("{} is made by a function that is not read: Megatron-LM's defaults are "
                    "counted; pass --source FILE",
                    key));
    found.json.erase(key);
  }
  const Json::json_pointer words("/tokenizer/vocab_size");
  if (found.json.contains(words) && is_open(found.json[words])) found.json["tokenizer"].erase("vocab_size");
}

std::string made_by(const Json& value) {
  return value.is_object() && value.contains(kPythonMadeBy) ? value[kPythonMadeBy].get<std::string>() : "";
}

std::int64_t whole(const Json& section, const char* key, std::int64_t fallback) {
  return section.is_object() && section.contains(key) && section[key].is_number_integer()
             ? section[key].get<std::int64_t>()
             : fallback;
}

// "torchtitan/models/llama3/config_registry.py", or the beginning of the function's name.
std::string network_of(const std::string& file, const ImportRequest& request) {
  const std::size_t end = file.find_last_of('/');
  const std::size_t begin =
      end == std::string::npos || end == 0 ? std::string::npos : file.find_last_of('/', end - 1);
  const std::string folder = end == std::string::npos
                                 ? ""
                                 : file.substr(begin == std::string::npos ? 0 : begin + 1,
                                               end - (begin == std::string::npos ? 0 : begin + 1));
  const std::string function = request.shell.arguments.empty() ? "" : request.shell.arguments.front();
  if (!folder.empty() && function.starts_with(folder)) return folder;
  const std::size_t last = function.find_last_of('_');
  return last == std::string::npos ? folder : function.substr(0, last);
}

// torchtitan/config/configs.py since 2026: tokens in place of sequences.
void say_batch(Json& sections) {
  for (const char* name : {"training", "parallelism"})  // before references, which an insertion would move
    if (!sections.contains(name)) sections[name] = Json::object();
  Json& training = sections["training"];
  if (!training.contains("max_context_length") && !training.contains("num_tokens_per_microbatch_per_dp_rank"))
    return;
  const std::int64_t seq = std::max<std::int64_t>(1, whole(training, "max_context_length", 2048));
  const std::int64_t micro =
      std::max<std::int64_t>(1, whole(training, "num_tokens_per_microbatch_per_dp_rank", 16384) / seq);
  Json& parallelism = sections["parallelism"];
  const bool is_pipelined = whole(parallelism, "pipeline_parallel_degree", 1) > 1;
  training["seq_len"] = seq;
  training["local_batch_size"] = micro * (is_pipelined ? whole(parallelism, "num_pp_microbatches", 1) : 1);
  if (is_pipelined) parallelism["pipeline_parallel_microbatch_size"] = micro;
  if (const std::int64_t step = whole(training, "num_tokens_per_train_step", -1); step > 0)
    training["global_batch_size"] = step / seq;
  for (const char* key :
       {"max_context_length", "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step"})
    training.erase(key);
  parallelism.erase("num_pp_microbatches");
}

void say_model(const Json& config, const std::string& network, Json& sections,
               std::vector<std::string>& notes) {
  Json model = {{"name", network}};
  const Json spec = config.value("model_spec", Json());
  if (spec.is_object() && spec.contains("0") && spec["0"].is_string()) model["flavor"] = spec["0"];
  for (const Json& each : spec.is_object() ? spec.value("converters", Json::array()) : Json::array()) {
    const std::string converter = made_by(each);
    if (converter.starts_with("Float8Linear"))
      model["converters"].push_back("float8");
    else if (converter.starts_with("MXFP8Linear"))
      model["converters"].push_back("mx");
    else
      notes.push_back(fmt::format("converter {} is ignored: GEMMs are counted in bf16", converter));
  }
  sections["model"] = model;
}

void say_checkpointing(const Json& config, Json& sections) {
  const std::string made = made_by(config.value("activation_checkpoint", Json()));
  if (made.empty()) return;
  const auto has = [&](const char* part) { return made.find(part) != std::string::npos; };
  sections["activation_checkpoint"] = {{"mode", has("Full")        ? "full"
                                                : has("Selective") ? "selective"
                                                                   : "none"},
                                       {"selective_ac_option", "op"}};
}

}  // namespace

std::string kind_of_python(const std::string& text, const std::string& file) {
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("torchtitan")) return "torchtitan";
  if (has("megatron.bridge")) return "megatron-bridge";
  static constexpr std::array kOthers = {
      std::pair{"olmo_core", "OLMo-core"}, std::pair{"nemo.collections", "NeMo 2"},
      std::pair{"deepspeed", "DeepSpeed"}, std::pair{"transformers", "transformers"}};
  for (const auto& [word, program] : kOthers)
    if (has(word))
      throw InputError({file, "", fmt::format("is Python of {}, which is not read", program), "",
                        "the log of a run, or the same settings as flags: rehearse help simulate"});
  return "";
}

Imported import_torchtitan_python(const std::string& text, const std::string& file,
                                  const ImportRequest& request, std::int64_t layers) {
  const PythonResult found = configuration(text, file, request);
  std::vector<std::string> notes = found.notes, dropped;
  Json sections = Json::object();
  for (const char* name : {"training", "parallelism", "compile", "optimizer", "checkpoint", "lr_scheduler",
                           "metrics", "profiling", "debug", "comm"})
    if (found.json.contains(name) && found.json[name].is_object()) sections[name] = found.json[name];
  say_batch(sections);
  say_checkpointing(found.json, sections);
  say_model(found.json, network_of(file, request), sections, notes);
  if (sections.contains("compile") && sections["compile"].contains("enable_async_tensor_parallel")) {
    const Json overlaps = sections["compile"]["enable_async_tensor_parallel"];
    sections["parallelism"]["enable_async_tensor_parallel"] = overlaps;
    sections["compile"].erase("enable_async_tensor_parallel");
  }
  drop_names_of_calls(sections);
  for (auto& [section, table] : sections.items()) {
    Json kept = Json::object();
    for (const auto& [key, value] : table.items())
      if (is_torchtitan_key(section, key) && !value.is_null())
        kept[key] = value;
      else if (!is_torchtitan_free(section, key) && !value.is_null())
        dropped.push_back(section + "." + key);
    table = kept;
  }
  if (!dropped.empty())
    notes.push_back(fmt::format("keys that are not read, with unknown effect: {}", join(dropped)));
  Imported imported = import_torchtitan_json(JsonReader(sections, file), request.gpus, layers, request.over);
  imported.notes.insert(imported.notes.begin(), notes.begin(), notes.end());
  return imported;
}

Imported import_bridge_python(const std::string& text, const std::string& file,
                              const ImportRequest& request) {
  PythonResult found = configuration(text, file, request);
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
  drop_what_is_open(found);
  YamlText yaml;
  yaml.json = std::move(found.json);
  yaml.lines = std::move(found.lines);
  Imported imported = import_yaml_dialect(yaml_dialect("megatron-bridge"), yaml, file, request);
  imported.notes.insert(imported.notes.begin(), found.notes.begin(), found.notes.end());
  return imported;
}

}  // namespace rehearse
