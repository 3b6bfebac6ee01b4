#include "frameworks/accelerate.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "frameworks/fsdp_arguments.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/torch_defaults.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxProcesses = 1 << 24;

// accelerate/commands/config/config_args.py and utils/dataclasses.py of v1.10: keys that leave a step as it
// is.
const std::set<std::string>& free_of_accelerate() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> all = {"compute_environment",
                                 "debug",
                                 "downcast_bf16",
                                 "enable_cpu_affinity",
                                 "machine_rank",
                                 "main_process_ip",
                                 "main_process_port",
                                 "main_training_function",
                                 "rdzv_backend",
                                 "same_network",
                                 "tpu_env",
                                 "tpu_use_cluster",
                                 "tpu_use_sudo",
                                 "gpu_ids",
                                 "deepspeed_hostfile",
                                 "command_file",
                                 "commands",
                                 "tpu_name",
                                 "tpu_zone",
                                 "mpirun_config",
                                 "main_process_ipaddress",
                                 "deepspeed_multinode_launcher",
                                 "deepspeed_exclusion_filter",
                                 "deepspeed_inclusion_filter",
                                 "zero3_init_flag",
                                 "zero3_save_16bit_model",
                                 "log_with",
                                 "version"};
    all.merge(free_of_fsdp("fsdp_"));
    return all;
  }();
  return keys;
}

// Ignored keys with their effect.
struct IgnoredOfAccelerate {
  std::string effect;
  std::string changes = "";  // above 10 % of the answer (base/omitted_effect.h)
};
const std::map<std::string, IgnoredOfAccelerate>& ignored_of_accelerate() {
  static const std::map<std::string, IgnoredOfAccelerate> keys = {
      {"dynamo_config", {kUncompiled, kLessTime}},
      {"dynamo_backend", {kUncompiled, kLessTime}},
      {"deepspeed_moe_layer_cls_names", {"each layer is gathered by itself"}},
      {"ipex_config", {"the GPUs of the cluster are counted"}},
      {"use_cpu", {"the GPUs of the cluster are counted", kMoreTime}},
      {"offload_optimizer_nvme_path", {"NVMe is counted as host memory", kMoreTime}},
      {"offload_param_nvme_path", {"parameters are counted on the GPU", kOffloadChanges}},
      {"fp8_config", {"fp8 is counted with one scale per tensor"}}};
  return keys;
}

class AccelerateReader {
 public:
  AccelerateReader(const YamlText& yaml, const std::string& file, const ImportRequest& request)
      : yaml_(yaml), config_(yaml.json, file), request_(request) {}

  Imported read() {
    imported_.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + config_.file()}};
    const std::int64_t processes = config_.integer_or("num_processes", 0, 0, kMaxProcesses);
    if (request_.gpus > 0 || processes > 0)
      imported_.scenario["gpus"] = request_.gpus > 0 ? request_.gpus : processes;
    const std::int64_t nodes = config_.integer_or("num_machines", 1, 1, kMaxProcesses);
    node_ = processes / std::max<std::int64_t>(1, nodes);
    const std::string type = word_at(config_, "distributed_type",
                                     config_.has("fsdp_config") ? "FSDP" : "MULTI_GPU");  // NO is false
    used("distributed_type");
    if (type == "DEEPSPEED" || config_.has("deepspeed_config")) return of_deepspeed();
    plan_ = {{"framework", type == "MEGATRON_LM" ? "megatron-core" : "fsdp"}};
    precision();
    if (type == "FSDP")
      fsdp(section("fsdp_config"));
    else if (type == "MEGATRON_LM")
      megatron(section("megatron_lm_config"));
    else if (type.starts_with("MULTI_") || type == "NO" || type == "FALSE")
      plan_["zero"] = 0;
    else
      config_.fail("distributed_type", "is not supported", "found " + type,
                   "FSDP, DEEPSPEED, MEGATRON_LM or MULTI_GPU");
    parallelism();
    used("gradient_accumulation_steps");
    if (config_.has("gradient_accumulation_steps"))
      imported_.accumulation = config_.integer("gradient_accumulation_steps", 1, kMaxProcesses);
    add_autocast(plan_);
    if (plan_["framework"] != "megatron-core") plan_["fused_adam"] = false;  // torch.optim.AdamW unless told
    note_missing();
    imported_.scenario["plan"] = plan_;
    list();
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  JsonReader section(const char* key) {
    if (config_.has(key)) return config_.object(key);
    return JsonReader(Json::object(), config_.file(), std::string("/") + key);
  }

  void used(const std::string& key) { used_.insert(key); }

  // No mixed precision: YAML reads a bare no as false.
  bool is_wide() { return !config_.has("mixed_precision") || config_.value("mixed_precision") == false; }

  void precision() {
    static const std::map<std::string, std::string> names = {
        {"no", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"fp8", "fp8"}};
    used("mixed_precision");
    plan_["precision"] = is_wide() ? "fp32" : config_.choice("mixed_precision", names);
  }

  // True, "true", 1 and "FULL_SHARD", as the command's own prompts write them.
  static std::string word_at(const JsonReader& from, const char* key, const std::string& fallback) {
    if (!from.has(key)) return fallback;
    const Json& value = from.value(key);
    return in_upper_case(value.is_string() ? value.get<std::string>() : value.dump());
  }

  // accelerate/utils/environment.py, str_to_bool.
  bool is_on(const JsonReader& from, const char* key) {
    used(key);
    static const std::set<std::string> yes = {"Y", "YES", "T", "TRUE", "ON", "1"},
                                       no = {"N", "NO", "F", "FALSE", "OFF", "0", ""};
    const std::string word = word_at(from, key, "FALSE");
    if (!yes.contains(word) && !no.contains(word))
      from.fail(key, "must be true or false", "found " + from.value(key).dump().substr(0, 200));
    return yes.contains(word);
  }

  void fsdp(const JsonReader& from) {
    static const std::map<std::string, std::pair<int, bool>> strategies = {{"FULL_SHARD", {3, false}},
                                                                           {"1", {3, false}},
                                                                           {"SHARD_GRAD_OP", {2, false}},
                                                                           {"2", {2, false}},
                                                                           {"NO_SHARD", {0, false}},
                                                                           {"3", {0, false}},
                                                                           {"HYBRID_SHARD", {3, true}},
                                                                           {"4", {3, true}},
                                                                           {"HYBRID_SHARD_ZERO2", {2, true}},
                                                                           {"5", {2, true}},
                                                                           {"TRUE", {3, false}},
                                                                           {"FALSE", {2, false}}};
    for (const char* key : {"fsdp_version", "fsdp_sharding_strategy", "fsdp_reshard_after_forward"})
      used(key);
    // accelerate/utils/dataclasses.py: FSDP1 unless the version is given; other parallelism needs FSDP2.
    const bool is_second = from.integer_or("fsdp_version", 1, 1, 2) == 2 || config_.has("parallelism_config");
    plan_["framework"] = is_second ? "fsdp" : "fsdp1";
    const char* const key =
        from.has("fsdp_sharding_strategy") ? "fsdp_sharding_strategy" : "fsdp_reshard_after_forward";
    const std::string word = word_at(from, key, "FULL_SHARD");
    const auto found = strategies.find(word);
    if (found == strategies.end())
      from.fail(key, "is no sharding strategy", "found " + word,
                "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD");
    plan_["zero"] = found->second.first;
    if (found->second.second && node_ > 0) plan_["zero_shard"] = node_;
    if (found->second.second && node_ == 0)
      note(key + std::string(" shards within a node: pass --zero-shard, the GPUs of a node"));
    if (is_on(from, "fsdp_offload_params")) {
      plan_["offload"] = "optimizer";
      note(std::string("fsdp_offload_params ") + kOffloadsAll);
      omit(imported_, "fsdp_offload_params", kOffloadsAll, kOffloadChanges);
    }
    plan_["recompute"] = is_on(from, "fsdp_activation_checkpointing") ? "full" : "none";
    for (const CountedKey& each : ignored_of_fsdp()) ignore_unless_counted(from, each);
    for (const char* each : {"fsdp_backward_prefetch", "fsdp_backward_prefetch_policy"}) {
      used(each);
      if (word_at(from, each, "") == "NO_PREFETCH") plan_["prefetch"] = 0;
      if (word_at(from, each, "") == "BACKWARD_POST")
        note(std::string(each) +
             " BACKWARD_POST is approximated: the next layer is counted as gathered beside "
             "the backward pass of this one");
    }
  }

  // The command's own prompts write "0" for the first choice.
  void ignore_unless_counted(const JsonReader& from, const CountedKey& argument) {
    const std::string key = std::string("fsdp_") + argument.path;
    used(key);
    const Json counted = Json::parse(argument.counted);
    const std::string plain =
        in_upper_case(counted.is_string() ? counted.get<std::string>() : counted.dump());
    const std::string word = word_at(from, key.c_str(), plain);
    const bool is_first = counted.is_string() && word == "0";
    if (word != plain && !is_first && !word.empty())
      note(fmt::format("{} {} is ignored: {}", key, word, argument.effect));
  }

  void megatron(const JsonReader& from) {
    const auto degree = [&](const char* key) {
      used(key);
      return from.integer_or(key, 1, 1, 1 << 20);
    };
    plan_["tp"] = degree("megatron_lm_tp_degree");
    plan_["pp"] = degree("megatron_lm_pp_degree");
    imported_.accumulation = degree("megatron_lm_num_micro_batches");
    plan_["sequence_parallel"] = is_on(from, "megatron_lm_sequence_parallelism");
    if (is_on(from, "megatron_lm_recompute_activations")) plan_["recompute"] = "selective";
    if (is_on(from, "megatron_lm_use_distributed_optimizer")) plan_["zero"] = 1;
    used("megatron_lm_gradient_clipping");
    plan_["clip_grad"] = from.number_or("megatron_lm_gradient_clipping", 1, 0, 1e9);
  }

  // accelerate/parallelism_config.py.
  void parallelism() {
    const JsonReader from = section("parallelism_config");
    const auto degree = [&](const std::string& key) {
      const std::string name = "parallelism_config_" + key;
      used(name);
      return from.integer_or(name, 1, 1, 1 << 20);
    };
    if (const std::int64_t tp = degree("tp_size"); tp > 1) plan_["tp"] = tp;
    const std::int64_t cp = degree("cp_size"), sp = degree("sp_size");
    if (cp > 1 || sp > 1) plan_["cp"] = std::max(cp, sp);
    if (sp > 1) plan_["cp_comm_type"] = "a2a";  // DeepSpeed's, the only backend
    used("parallelism_config_sp_backend");
    const std::int64_t copies = degree("dp_replicate_size");
    const std::int64_t shard = degree("dp_shard_size") * cp;  // the mesh dp_shard_cp
    if (copies > 1 && shard > 1) plan_["zero_shard"] = shard;
  }

  // The settings as a ds_config.json, whose reader takes it.
  Imported of_deepspeed() {
    const JsonReader from = section("deepspeed_config");
    Json config = Json::object();
    if (from.has("deepspeed_config_file")) {
      const std::string name = from.text("deepspeed_config_file");
      const auto given = request_.shell.files.find(name.substr(name.find_last_of('/') + 1));
      if (given == request_.shell.files.end())
        from.fail("deepspeed_config_file", "is a file of its own, which holds the settings", name,
                  "rehearse import " + name + ", or --source " + name);
      config = JsonReader::of_text(given->second, name).json();
    }
    Json& zero = config["zero_optimization"];
    if (!zero.is_object()) zero = Json::object();
    if (from.has("zero_stage")) zero["stage"] = from.value("zero_stage");
    for (const auto& [key, other] : {std::pair{"offload_optimizer_device", "offload_optimizer"},
                                     std::pair{"offload_param_device", "offload_param"}})
      if (const std::string device = word_at(from, key, "NONE"); device != "NONE" && device != "FALSE")
        zero[other]["device"] = in_lower_case(device);
    for (const char* key : {"gradient_accumulation_steps", "gradient_clipping"})
      if (from.has(key)) config[key] = from.value(key);
    const std::string precision = is_wide() ? "" : config_.text("mixed_precision");
    if (precision == "bf16" || precision == "fp16") config[precision]["enabled"] = true;
    if (precision == "fp8") {  // accelerate/utils/deepspeed.py: DeepSpeed's own part is in bf16
      config["bf16"]["enabled"] = true;
      note(fmt::format(
          "line {}: mixed_precision fp8 is approximated: GEMMs are counted in bf16; --precision fp8",
          yaml_.line("/mixed_precision")));
    }
    const int gpus = imported_.scenario.contains("gpus") ? imported_.scenario["gpus"].get<int>() : 0;
    Imported read = import_deepspeed(JsonReader(config, config_.file()), gpus);
    for (const char* key :
         {"mixed_precision", "zero_stage", "offload_optimizer_device", "offload_param_device",
          "gradient_accumulation_steps", "gradient_clipping", "deepspeed_config_file"})
      used(key);
    imported_.scenario = std::move(read.scenario);
    imported_.accumulation = read.accumulation;
    imported_.omitted.insert(imported_.omitted.end(), read.omitted.begin(), read.omitted.end());
    for (std::string& each : read.notes) note(std::move(each));
    list();
    return std::move(imported_);
  }

  // Names the flags of values that the file cannot state and the command line does not give.
  void note_missing() {
    std::vector<std::string> flags;
    for (const auto& [pointer, flag] :
         {std::pair{"/plan/micro_batch", "--mbs"}, {"/plan/global_batch", "--gbs"}, {"/plan/seq", "--seq"}})
      if (!request_.over.contains(pointer)) flags.emplace_back(flag);
    if (!flags.empty()) note("Accelerate's file names no batch and no sequence: pass " + join(flags));
  }

  // Lists every key of the file, and those of its sections.
  void list() {
    for (const char* key : {"num_processes", "num_machines", "use_parallelism_config"}) used(key);
    list_keys(yaml_.json, "", "");
    settle_fates(imported_);
  }

  void list_keys(const Json& section, const std::string& path, const std::string& pointer) {
    for (const auto& [key, value] : section.items()) {
      const std::string at = pointer + "/" + pointer_step(key);
      const auto ignored = ignored_of_accelerate().find(key);
      if (value.is_object() && !value.empty() && path.empty() && ignored == ignored_of_accelerate().end() &&
          !free_of_accelerate().contains(key)) {
        list_keys(value, key + ".", at);
        continue;
      }
      ImportedOption option{path + key,
                            value.is_structured() ? "" : value.dump(),
                            fmt::format("line {}", yaml_.line(at)),
                            OptionFate::unknown,
                            "",
                            ""};
      if (used_.contains(key)) option.fate = OptionFate::used;
      const bool is_empty = value.is_null() || value == Json::object();
      if (free_of_accelerate().contains(key) || (is_empty && option.fate == OptionFate::unknown))
        option.fate = OptionFate::free;
      const bool is_set = value != false && !value.is_null() && value != "" && !value.empty();
      if (ignored != ignored_of_accelerate().end()) {
        option.fate = is_set ? OptionFate::ignored : OptionFate::free;
        option.effect = ignored->second.effect;
        if (is_set) {
          note(fmt::format("line {}: {}{} is ignored: {}", yaml_.line(at), path, key, option.effect));
          omit(imported_, path + key, option.effect, ignored->second.changes);
        }
      }
      if (option.fate == OptionFate::unknown) {
        option.nearest = nearest_name(key, {used_.begin(), used_.end()});
        note(fmt::format("line {}: {}{} is unknown to Accelerate, and ignored", yaml_.line(at), path, key));
      }
      list_each(option, value, at);
    }
  }

  // The keys of a section have its fate.
  void list_each(const ImportedOption& option, const Json& value, const std::string& pointer) {
    if (!value.is_object() || value.empty()) return imported_.options.push_back(option);
    for (const auto& [key, below] : value.items()) {
      ImportedOption each = option;
      const std::string at = pointer + "/" + pointer_step(key);
      each.name += "." + key;
      each.value = below.is_structured() ? "" : below.dump();
      each.place = fmt::format("line {}", yaml_.line(at));
      list_each(each, below, at);
    }
  }

  const YamlText& yaml_;
  JsonReader config_;
  const ImportRequest& request_;
  std::int64_t node_ = 0;  // GPUs of one
  std::set<std::string> used_;
  Imported imported_;
  Json plan_;
};

}  // namespace

bool is_accelerate(const Json& yaml) {
  return yaml.is_object() && (yaml.contains("distributed_type") || yaml.contains("compute_environment") ||
                              (yaml.contains("fsdp_config") && yaml.contains("num_processes")));
}

Imported import_accelerate(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  return AccelerateReader(yaml, file, request).read();
}

}  // namespace rehearse
