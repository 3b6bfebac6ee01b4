#include <fmt/core.h>

#include <array>
#include <initializer_list>
#include <map>
#include <set>

#include "base/error.h"
#include "frameworks/nemo_words.h"
#include "frameworks/python_recipe.h"
#include "frameworks/python_settings.h"
#include "frameworks/yaml_dialects.h"

namespace rehearse {

namespace {

// Configurations of NeMo 2 whose network ships with the program (nemo/collections/llm/gpt/model).
const std::map<std::string, std::string>& networks_of_nemo() {
  static const std::map<std::string, std::string> names = {{"Llama3Config8B", "llama3-8b"},
                                                           {"Llama3Config70B", "llama3-70b"},
                                                           {"Llama31Config405B", "llama3.1-405b"},
                                                           {"DeepSeekV3Config", "deepseek-v3"},
                                                           {"Qwen3Config8B", "qwen3-8b"},
                                                           {"Qwen3Config30B_A3B", "qwen3-30b-a3b"},
                                                           {"Qwen3Config235B_A22B", "qwen3-235b-a22b"}};
  return names;
}

// Modules of nemo/collections/llm/recipes, whose function pretrain_recipe() makes the whole recipe.
const std::map<std::string, std::string>& networks_of_recipes() {
  static const std::map<std::string, std::string> names = {{"llama3_8b", "llama3-8b"},
                                                           {"llama3_70b", "llama3-70b"},
                                                           {"llama31_405b", "llama3.1-405b"},
                                                           {"deepseek_v3", "deepseek-v3"},
                                                           {"qwen3_8b", "qwen3-8b"},
                                                           {"qwen3_30b_a3b", "qwen3-30b-a3b"},
                                                           {"qwen3_235b_a22b", "qwen3-235b-a22b"}};
  return names;
}

// "llama3_8b" of "llm.llama3_8b.pretrain_recipe".
std::string module_of(const std::string& made) {
  const std::size_t end = made.find_last_of('.');
  if (end == std::string::npos || end == 0) return "";
  const std::size_t begin = made.find_last_of('.', end - 1);
  return made.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1));
}

// Keys of a network's shape; a recipe changes the network where its values differ from the configuration's.
constexpr std::array kShapeOfNemo = {"num_layers",          "hidden_size",      "ffn_hidden_size",
                                     "num_attention_heads", "num_query_groups", "num_moe_experts",
                                     "moe_router_topk",     "kv_channels"};

// A section without the keys that other parts read.
Json without(const Json& section, std::initializer_list<const char*> keys) {
  Json rest = section.is_object() ? section : Json::object();
  for (const char* key : keys) rest.erase(key);
  return rest;
}

// "run.Config(LlamaModel, ...)" as the object itself.
Json unwrapped(const Json& value) {
  if (!value.is_structured()) return value;
  Json found = value;
  const std::string made = made_by(value);
  const std::string last = made.substr(made.find_last_of('.') + 1);
  const bool is_config = last == "Config" || last == "Partial";
  if (is_config && value.contains("0") && value["0"].is_string()) {
    const std::string name = value["0"].get<std::string>();
    found[kPythonMadeBy] = name.substr(name.find_last_of('.') + 1);
    found.erase("0");
  }
  for (Json& each : found) each = unwrapped(each);
  return found;
}

class NemoRecipe {
 public:
  NemoRecipe(const Json& recipe, const std::string& file) : recipe_(unwrapped(recipe)), file_(file) {}

  // The recipe as sections of Megatron-Bridge, whose names NeMo 2 shares.
  Json sections() {
    const bool has_base = !made_by(recipe_).empty() && !is_python_class(made_by(recipe_));
    Json trainer = recipe_.is_object() ? recipe_.value("trainer", Json()) : Json();
    if (has_base && trainer.is_null()) trainer = Json::object();
    if (has_base && !trainer.contains("strategy")) trainer["strategy"] = Json::object();
    if (!trainer.is_object() || !trainer.value("strategy", Json()).is_object())
      throw InputError({file_, "", "is no recipe of NeMo 2 with a Megatron strategy", "",
                        "a function that returns llm.MODEL.pretrain_recipe(...)"});
    const Json data = recipe_.value("data", Json());
    add_network(recipe_.value("model", Json()));
    add_strategy(trainer["strategy"]);
    for (const auto& [key, section] :
         {std::pair{"global_batch_size", "train"}, {"micro_batch_size", "train"}, {"seq_length", "dataset"}})
      if (data.is_object() && data.contains(key)) sections_[section][key] = data[key];
    if (sections_["model"].contains("seq_length")) sections_["dataset"].erase("seq_length");
    const Json optim = recipe_.value("optim", Json());
    sections_["optimizer"] = optim.is_object() ? optim.value("config", Json::object()) : Json::object();
    sections_["optim"] = without(optim, {"config"});
    sections_["data"] = without(data, {"global_batch_size", "micro_batch_size", "seq_length"});
    sections_["trainer"] = without(trainer, {"strategy", "plugins", "callbacks", "devices", "num_nodes"});
    for (const Json& plugin : list(trainer.value("plugins", Json()))) add_plugin(plugin);
    for (const Json& callback : list(trainer.value("callbacks", Json()))) add_callback(callback);
    if (const Json peft = recipe_.value("peft", Json()); !peft.is_null())
      notes.emplace_back("peft is ignored: all parameters are counted as trained");
    add_gpus(trainer);
    return sections_;
  }

  std::string network;  // of the program's own; "" where there is none
  std::int64_t gpus = 0;
  std::vector<std::string> notes;

 private:
  static Json list(const Json& value) {
    if (value.is_object() && value.contains("+")) return value["+"];
    return value.is_array() ? value : value.is_object() ? Json::array({value}) : Json::array();
  }

  void add_network(const Json& model) {
    const Json config = model.is_object() ? model.value("config", Json()) : Json();
    sections_["model"] = config.is_object() ? config : Json::object();
    const std::string name = made_by(config).empty() ? module_of(made_by(recipe_)) : made_by(config);
    const auto& names = made_by(config).empty() ? networks_of_recipes() : networks_of_nemo();
    const auto known = names.find(name);
    bool is_changed = false;
    for (const char* key : kShapeOfNemo) is_changed = is_changed || sections_["model"].contains(key);
    if (known != names.end() && !is_changed)
      network = known->second;
    else
      notes.push_back(fmt::format("the network is that of {}{}: pass --model NAME|config.json",
                                  name.empty() ? "another file" : name, is_changed ? ", changed" : ""));
    if (is_changed)
      for (const char* key : kShapeOfNemo) sections_["model"].erase(key);
  }

  void add_strategy(const Json& strategy) {
    for (const auto& [key, value] : strategy.items())
      if (key != "fsdp" && !value.is_object()) sections_["model"][key] = value;
    if (const Json ddp = strategy.value("ddp", Json()); ddp.is_object()) sections_["ddp"] = ddp;
    if (strategy.value("ddp", Json()) == "megatron") sections_["model"].erase("ddp");
    const Json fsdp = strategy.value("fsdp", Json());
    if (fsdp == "megatron") sections_["ddp"]["use_megatron_fsdp"] = true;
    if (fsdp == "pytorch") sections_["ddp"]["use_torch_fsdp2"] = true;
  }

  void add_plugin(const Json& plugin) {
    const bool is_of_base = made_by(plugin).empty() && plugin.is_object();
    if (!is_of_base && made_by(plugin) != "MegatronMixedPrecision") {
      notes.push_back(fmt::format("plugin {} is ignored: its effect is not known", made_by(plugin)));
      return;
    }
    sections_["mixed_precision"] = plugin;
    if (plugin.contains("precision")) sections_["precision"] = plugin["precision"];
    sections_["mixed_precision"].erase("precision");
  }

  void add_callback(const Json& callback) {
    static const std::set<std::string> free = {
        "TimingCallback", "GarbageCollectionCallback", "ModelCheckpoint",          "NsysCallback",
        "ModelTransform", "MemoryProfileCallback",     "FLOPsMeasurementCallback", "DeltaTimingCallback",
        "SpeedMonitor"};
    const std::string name = made_by(callback);
    if (name == "MegatronCommOverlapCallback") {
      sections_["comm_overlap"] = callback;
    } else if (name == "MegatronTokenDropCallback") {
      sections_["model"]["moe_expert_capacity_factor"] =
          callback.value("moe_expert_capacity_factor", Json(1.0));
    } else if (!free.contains(name)) {
      notes.push_back(fmt::format("callback {} is ignored: its effect is not known",
                                  name.empty() ? callback.dump().substr(0, 60) : name));
    }
  }

  void add_gpus(const Json& trainer) {
    const auto count = [&](const char* key, const char* argument) -> std::int64_t {
      const Json value = trainer.value(key, recipe_.value(argument, Json(1)));
      if (value.is_number_integer() && value > 0 && value < (1 << 20)) return value.get<std::int64_t>();
      notes.push_back(
          fmt::format("trainer.{} is not known ({}): pass --gpus", key, value.dump().substr(0, 60)));
      return 0;
    };
    const bool has_base = !made_by(recipe_).empty() && !is_python_class(made_by(recipe_));
    const bool is_said = trainer.contains("devices") || recipe_.contains("num_gpus_per_node");
    if (has_base && !is_said)
      return notes.emplace_back("the recipe's number of GPUs is not known: pass --gpus"), void();
    gpus = count("devices", "num_gpus_per_node") * count("num_nodes", "num_nodes");
  }

  Json recipe_;
  const std::string& file_;
  Json sections_ = {{"model", Json::object()}, {"train", Json::object()}, {"dataset", Json::object()}};
};

}  // namespace

namespace {

// `found`: null of words of a command line, whose recipe the file does not name.
Imported read_recipe(const Json& json, const PythonSettings* found, const std::string& file,
                     const ImportRequest& request) {
  NemoRecipe recipe(json, file);
  YamlText yaml;
  yaml.json = recipe.sections();
  if (found != nullptr) require_decided_recipe(*found, yaml.json, file, request);
  drop_names_of_calls(yaml.json);
  Imported imported = import_yaml_dialect(yaml_dialect("nemo-2"), yaml, file, request);
  imported.notes.insert(imported.notes.begin(), recipe.notes.begin(), recipe.notes.end());
  if (recipe.gpus > 0 && request.gpus == 0) imported.scenario["gpus"] = recipe.gpus;
  if (!recipe.network.empty() && !request.over.contains("/model"))
    imported.scenario["model"] = recipe.network;
  return imported;
}

}  // namespace

Imported import_nemo_python(const std::string& text, const std::string& file, const ImportRequest& request) {
  return import_nemo_settings(python_configuration(text, file, request, true), file, request);
}

Imported import_nemo_settings(PythonSettings found, const std::string& file, const ImportRequest& request) {
  note_on_recipe(found);
  Imported imported = read_recipe(found.json, &found, file, request);
  imported.notes.insert(imported.notes.begin(), found.notes.begin(), found.notes.end());
  return imported;
}

Imported import_nemo_words(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  const bool is_words = nemo_words_of(yaml.json) != NemoWords::none;
  return read_recipe(is_words ? nested_nemo_words(yaml).json : yaml.json, nullptr, file, request);
}

}  // namespace rehearse
