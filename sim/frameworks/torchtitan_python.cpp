#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "frameworks/python_recipe.h"
#include "frameworks/python_settings.h"
#include "frameworks/torchtitan_decided.h"
#include "frameworks/torchtitan_keys.h"

namespace rehearse {

namespace {

std::int64_t whole(const Json& section, const char* key, std::int64_t fallback) {
  return section.is_object() && section.contains(key) && section[key].is_number_integer()
             ? section[key].get<std::int64_t>()
             : fallback;
}

// "qwen3" of "from torchtitan.models.qwen3 import model_registry"; "" where no import says so.
std::string imported_network(const std::map<std::string, std::string>& imports) {
  constexpr std::string_view kModels = "torchtitan.models.";
  const auto found = imports.find("model_registry");
  if (found == imports.end() || !found->second.starts_with(kModels)) return "";
  const std::string name = found->second.substr(kModels.size());
  return name.substr(0, name.find('.'));
}

// Of an import, of "torchtitan/models/llama3/config_registry.py", or the beginning of the function's name.
std::string network_of(const PythonSettings& found, const std::string& file, const ImportRequest& request) {
  if (const std::string imported = imported_network(found.imports); !imported.empty()) return imported;
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

// A registry of torchtitan as sections and keys of its TOML files, and the settings that these lack.
class Registry {
 public:
  Registry(const PythonSettings& found, const SaidOverFile& over, std::string network,
           const std::string& file)
      : found_(found), over_(over), config_(found.json), network_(std::move(network)), file_(file) {
    counts_tokens_ = has_token_budget(config_.value("training", Json::object()));
    for (const OpenSetting& each : found.open)
      counts_tokens_ = counts_tokens_ || has_token_budget({{each.path.substr(each.path.find('.') + 1), 0}});
  }

  Json sections() {
    notes = require_decided_registry(found_, over_, file_);
    require_trainer();
    for (const char* name : {"training", "parallelism"}) sections_[name] = Json::object();
    for (const char* name : kSectionsOfRegistry)
      if (config_.contains(name) && config_[name].is_object()) sections_[name] = config_[name];
    batch();
    model();
    checkpointing();
    overlap();
    optimizer();
    others();
    return sections_;
  }

  // After the sections have been read.
  void add_to(Json& plan) const {
    if (graphs_) plan["cuda_graph"] = true;
    if (plan.value("recompute", "") == "full" && counts_tokens_) plan["recompute_early_stop"] = false;
    if (!sequence_parallel_) plan["sequence_parallel"] = false;
  }

  std::vector<std::string> notes;
  std::vector<OmittedEffect> omitted;

 private:
  // torchtitan/config/configs.py since June 2026: tokens in place of sequences.
  static bool has_token_budget(const Json& training) {
    return training.contains("max_context_length") ||
           training.contains("num_tokens_per_microbatch_per_dp_rank");
  }

  void ignore(const std::string& setting, const std::string& effect, const std::string& changes = "") {
    notes.push_back(fmt::format("{} is ignored: {}", setting, effect));
    if (!changes.empty()) omitted.push_back({setting, effect, changes_of(changes)});
  }

  // Trainers of experiments run other passes over the same network; some choose the sharding themselves.
  void require_trainer() {
    const std::string made = made_by(config_);
    for (const char* other : {"Flux", "RL", "AutoParallel"})
      if (made.starts_with(other))
        throw InputError({file_, "", "is a configuration whose plan the file does not state", "found " + made,
                          "a function that returns Trainer.Config"});
    if (made != "Trainer.Config") ignore(made, "its differences from Trainer.Config are not counted");
  }

  void batch() {
    Json& training = sections_["training"];
    Json& parallelism = sections_["parallelism"];
    if (parallelism.contains("enable_sequence_parallel")) {
      sequence_parallel_ = parallelism["enable_sequence_parallel"] != false;
      parallelism.erase("enable_sequence_parallel");
    }
    if (parallelism.contains("context_parallel_load_balancer") &&
        parallelism["context_parallel_load_balancer"].is_null())
      ignore("parallelism.context_parallel_load_balancer None",
             "each rank is counted with an equal share of the causal attention");
    parallelism.erase("spmd_backend");  // how tensors name their sharding
    if (!counts_tokens_) return;
    const auto said = over_.find("/plan/seq");
    const Json own = said == over_.end() ? Json() : Json::parse(said->second, nullptr, false);
    const std::int64_t seq = own.is_number_integer() && own > 0
                                 ? own.get<std::int64_t>()
                                 : std::max<std::int64_t>(1, whole(training, "max_context_length", 2048));
    const std::int64_t micro =
        std::max<std::int64_t>(1, whole(training, "num_tokens_per_microbatch_per_dp_rank", 16384) / seq);
    const bool is_pipelined = whole(parallelism, "pipeline_parallel_degree", 1) > 1;
    training["seq_len"] = seq;
    const std::int64_t parts = whole(parallelism, "num_pp_microbatches", 1);
    training["local_batch_size"] = micro * (is_pipelined ? std::min(parts, kMaxOfRegistry / micro) : 1);
    if (is_pipelined) parallelism["pipeline_parallel_microbatch_size"] = micro;
    if (const std::int64_t step = whole(training, "num_tokens_per_train_step", -1); step > 0)
      training["global_batch_size"] = step / seq;
    graphs_ = !is_pipelined && training.value("disable_cuda_graphs", Json(false)) != true;
    for (const char* key : {"max_context_length", "num_tokens_per_microbatch_per_dp_rank",
                            "num_tokens_per_train_step", "disable_cuda_graphs"})
      training.erase(key);
    parallelism.erase("num_pp_microbatches");
  }

  void model() {
    const Json spec = config_.value("model_spec", Json());
    Json model = {{"name", network_}};
    if (spec.is_object()) {
      for (const char* key : {"0", "flavor"})
        if (spec.contains(key) && spec[key].is_string()) model["flavor"] = spec[key];
      for (const auto& [key, value] : spec.items()) setting_of_model(key, value);
      add_converters(spec.value("converters", Json::array()), model);
    }
    const Json container = config_.value("model_converters", Json());
    if (container.is_object()) add_converters(container.value("converters", Json::array()), model);
    sections_["model"] = model;
  }

  void setting_of_model(const std::string& key, const Json& value) {
    static const std::set<std::string> known = {"()", "0", "flavor", "converters"};
    if (known.contains(key) || value.is_null()) return;
    const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
    const bool is_backend = key == "moe_comm_backend";
    if (is_backend && (word == "standard" || word == "deepep" || word == "hybridep"))
      sections_["parallelism"]["expert_parallel_comm_backend"] = word;
    else if (key == "attn_backend" && word != "sdpa")
      ignore("model_spec.attn_backend " + word,
             "attention spans the whole sequence, in the profile's kernel");
    else if (key != "attn_backend")
      ignore(fmt::format("model_spec.{} {}", key, word), "the network is counted without it");
  }

  void add_converters(const Json& converters, Json& model) {
    if (!converters.is_array())
      throw InputError({file_, "model_spec.converters", "must be a list that the file decides",
                        "found " + converters.dump().substr(0, 200), way_out_of_python()});
    for (const Json& each : converters) {
      const std::string name = made_by(each);
      if (name.starts_with("Float8Linear")) {
        model["converters"].push_back("float8");
        say_scaling(each);
      } else if (name.starts_with("MXFP8Linear")) {
        model["converters"].push_back("mx");
        say_scaling(each);
      } else if (name.starts_with("Float8Grouped")) {
        model["converters"].push_back("quantize.grouped_mm.float8");
      } else if (name.starts_with("MXFP8Grouped")) {
        model["converters"].push_back("quantize.grouped_mm.mx");
      } else if (name.starts_with("LoRA")) {
        ignore("converter " + name, "all parameters are counted as trained", "less memory, less time");
      } else {
        ignore("converter " + (name.empty() ? each.dump().substr(0, 60) : name),
               "the GEMMs keep the precision that they have without it");
      }
    }
  }

  // FP8 is scaled by row by default since the registries count tokens, and by tensor before. MXFP8's recipe
  // is read like Float8's.
  void say_scaling(const Json& converter) {
    const bool is_mx = made_by(converter).starts_with("MX");
    Json& float8 = sections_["float8"];
    if (float8.is_null()) float8 = Json::object();
    if (counts_tokens_) float8["recipe_name"] = "rowwise";
    Json& section = is_mx ? sections_["quantize"]["linear"]["mx"] : float8;
    const char* const name = is_mx ? "quantize.linear.mx" : "float8";
    for (const auto& [key, value] : converter.items()) {
      if (key == kPythonMadeBy || key == "fqns" || value.is_null()) continue;
      if (is_torchtitan_key(name, key))
        section[key] = value;
      else
        ignore(fmt::format("converter {} {}", key, value.dump().substr(0, 100)), "its effect is not known");
    }
    if (converter.contains("fqns"))
      ignore("converter fqns " + converter["fqns"].dump().substr(0, 200),
             "all linear layers but the output are counted as converted");
  }

  // SelectiveAC is the default; FullAC recomputes to the end of a layer
  // (torchtitan/distributed/activation_checkpoint.py).
  void checkpointing() {
    const bool is_said = config_.contains("activation_checkpoint");
    const Json policy = config_.value("activation_checkpoint", Json());
    const std::string made = made_by(policy);
    const auto has = [&](const char* part) { return made.find(part) != std::string::npos; };
    Json& section = sections_["activation_checkpoint"];
    section = Json::object();
    if (has("ActivationCheckpointConfig")) {
      for (const auto& [key, value] : policy.items())
        if (key != kPythonMadeBy && !value.is_null()) section[key] = value;
      select_by_op(section);
    } else if (!is_said && !counts_tokens_) {
      select_by_op(section);
    } else if (is_said && policy.is_null()) {
      section["mode"] = "none";
    } else if (has("FullAC") || has("MemoryBudgetAC")) {
      section["mode"] = has("FullAC") ? "full" : "memory_budget";
    } else if (has("SelectiveAC") || (!is_said && counts_tokens_)) {
      section = {{"mode", "selective"}, {"selective_ac_option", "op"}};
    } else if (is_said) {
      throw InputError({file_, "activation_checkpoint", "must be a policy that the file decides",
                        "found " + (made.empty() ? policy.dump().substr(0, 200) : made),
                        way_out_of_python()});
    }
  }

  // mode "selective" recomputes every second layer up to v0.2.2, and operations since 23 March 2026, which
  // removed selective_ac_option (torchtitan 114151ad4; c5d93d109 of 15 June replaced the class).
  void select_by_op(Json& section) {
    if (section.value("mode", Json("selective")) != "selective" || section.contains("selective_ac_option"))
      return;
    section["selective_ac_option"] = "op";
    notes.emplace_back(
        "activation_checkpoint selective names no option: recompute by operation is assumed, as of "
        "torchtitan "
        "since 23 March 2026; before, every second layer is recomputed: pass selective_ac_option=\"2\" in "
        "the "
        "file");
  }

  void overlap() {
    Json& compile = sections_["compile"];
    if (!compile.is_object()) compile = Json::object();
    if (!compile.contains("enable_async_tensor_parallel")) return;
    const Json overlaps = compile["enable_async_tensor_parallel"];
    sections_["parallelism"]["enable_async_tensor_parallel"] = overlaps;
    compile.erase("enable_async_tensor_parallel");
  }

  void optimizer() {
    Json& section = sections_["optimizer"];
    if (section.is_null()) return;
    const std::string made = made_by(section);
    if (made == "OptimizersInBackwardContainer.Config") section["early_step_in_backward"] = true;
    static const std::set<std::string> adam = {"", "default_adamw", "OptimizersContainer.Config",
                                               "OptimizersInBackwardContainer.Config"};
    if (!adam.contains(made))
      notes.push_back(fmt::format("optimizer {} is approximated: AdamW is counted", made));
    std::set<std::string> names;
    for (const Json& group : section.value("param_groups", Json::array()))
      if (group.is_object()) names.insert(group.value("optimizer_name", Json("AdamW")).dump());
    for (const std::string& name : names)
      if (name != "\"AdamW\"" && name != "\"Adam\"") section["name"] = Json::parse(name, nullptr, false);
    section.erase("param_groups");
    section.erase("0");  // the learning rate
    if (section.value("implementation", Json()) == "fused_opt_states_bf16") {
      ignore("optimizer.implementation fused_opt_states_bf16", "moments are counted in fp32", kLessMemory);
      section["implementation"] = "fused";
    }
  }

  // Settings without a section of their own.
  void others() {
    static const std::set<std::string> free = {
        "dataloader", "dump_folder", "hf_assets_path", "tokenizer",    "validator", "profiler",
        "()",         "job",         "validation",     "print_config", "0",         "**"};
    std::set<std::string> read = {"model_spec", "model_converters", "activation_checkpoint"};
    read.insert(kSectionsOfRegistry.begin(), kSectionsOfRegistry.end());
    for (const auto& [key, value] : config_.items()) {
      if (free.contains(key) || read.contains(key) || value.is_null()) continue;
      const std::string made = made_by(value);
      if (key == "loss" && made != "CrossEntropyLoss.Config")
        ignore("loss " + made, "the logits of all tokens are counted at once, which takes more memory",
               kLessMemory);
      else if (key == "override" && value.is_object())
        ignore("override " + value.value("imports", Json()).dump().substr(0, 200),
               "the kernels of the profile are counted");
      else if (key != "loss")
        ignore(fmt::format("{} {}", key, made), "its effect is not known");
    }
  }

  const PythonSettings& found_;
  const SaidOverFile& over_;
  const Json& config_;
  std::string network_;
  const std::string& file_;
  Json sections_ = Json::object();
  bool counts_tokens_ = false, graphs_ = false, sequence_parallel_ = true;
};

}  // namespace

Imported import_torchtitan_settings(const PythonSettings& found, const std::string& file,
                                    const ImportRequest& request, std::int64_t layers) {
  Registry registry(found, request.over, network_of(found, file, request), file);
  Json sections = registry.sections();
  std::vector<std::string> notes = found.notes, dropped;
  notes.insert(notes.end(), registry.notes.begin(), registry.notes.end());
  drop_names_of_calls(sections);
  for (auto& [section, table] : sections.items()) {
    Json kept = Json::object();
    for (const auto& [key, value] : table.items())
      if (is_torchtitan_key(section, key))
        kept[key] = value;
      else if (!is_torchtitan_free(section, key) && !value.is_null())
        dropped.push_back(section + "." + key);
    table = kept;
  }
  if (!dropped.empty())
    notes.push_back(fmt::format("keys that are not read, with unknown effect: {}", join(dropped)));
  Imported imported = import_torchtitan_json(JsonReader(sections, file), request.gpus, layers, request.over);
  registry.add_to(imported.scenario["plan"]);
  imported.omitted.insert(imported.omitted.begin(), registry.omitted.begin(), registry.omitted.end());
  imported.notes.insert(imported.notes.begin(), notes.begin(), notes.end());
  return imported;
}

}  // namespace rehearse
