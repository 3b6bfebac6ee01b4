#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>

#include "frameworks/deepspeed_keys.h"
#include "frameworks/imported.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/torch_defaults.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 40;
constexpr double kMaxBucket = 1e18;  // elements, above those of any model

class DeepSpeedReader {
 public:
  DeepSpeedReader(const JsonReader& config, int gpus) : config_(config), gpus_(gpus) {}

  Imported read() {
    imported_.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + config_.file()}};
    if (gpus_ > 0) imported_.scenario["gpus"] = gpus_;
    plan_ = {{"framework", "deepspeed"}, {"precision", "fp32"}};
    attempt([&] { precision(); });
    attempt([&] {
      if (said("gradient_clipping", config_))
        plan_["clip_grad"] = config_.number("gradient_clipping", 0, kMaxClipGrad);
    });
    attempt([&] { degrees(); });
    attempt([&] { zero_section(); });
    attempt([&] { batch(); });
    attempt([&] { checkpointing(); });
    attempt([&] { optimizer(); });
    attempt([&] { accumulation_type(); });
    for (const char* key : deepspeed_free_keys()) config_.has(key);
    note_unmodelled(deepspeed_unmodelled(), config_, "");
    note_unknown(config_, "");
    if (!violations_.empty()) throw InputError(std::move(violations_));
    imported_.scenario["plan"] = plan_;
    list_options(config_.json(), "", nullptr);
    settle_fates(imported_);
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  void ignore(const std::string& key, const std::string& counted, const std::string& changes) {
    note(fmt::format("\"{}\" is ignored: {}", key, counted));
    omit(imported_, key, counted, changes);
  }

  // An error in one place does not hide errors in other places.
  template <typename Read>
  void attempt(const Read& read) {
    try {
      read();
    } catch (const InputError& error) {
      violations_.insert(violations_.end(), error.violations().begin(), error.violations().end());
    }
  }

  // A key that no release of DeepSpeed reads has no effect there either. A misspelt key was meant to have
  // one, so the note names the nearest key.
  void note_unknown(const JsonReader& reader, const std::string& section) {
    for (const auto& [key, near] : reader.unread()) {
      note(fmt::format("\"{}{}\" is unknown to DeepSpeed, and ignored{}", section, key,
                       near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
      unknown_[section + key] = near;
    }
  }

  // Lists each key. `of_section` is the fate of a section that is unknown or free.
  void list_options(const Json& json, const std::string& section, const OptionFate* of_section) {
    for (const auto& [key, value] : json.items()) {
      const std::string path = section + key;
      const auto unknown = unknown_.find(path);
      const OptionFate own = unknown != unknown_.end()    ? OptionFate::unknown
                             : is_free_of_deepspeed(path) ? OptionFate::free
                                                          : OptionFate::used;
      const OptionFate fate = of_section != nullptr ? *of_section : own;
      if (value.is_object() && !value.empty()) {
        list_options(value, path + "/", fate == OptionFate::used ? nullptr : &fate);
        continue;
      }
      imported_.options.push_back({path, value.is_structured() ? "" : value.dump(), "", fate, "",
                                   unknown == unknown_.end() ? "" : unknown->second});
    }
  }

  // {"enabled": false, ...}
  static bool is_off(const Json& section) {
    return section.is_object() && section.contains("enabled") && section["enabled"] == false;
  }

  void note_unmodelled(std::span<const UnmodelledKey> keys, const JsonReader& reader,
                       const std::string& section) {
    for (const UnmodelledKey& each : keys)
      if (reader.has(each.key) && reader.value(each.key) != Json(each.usual) &&
          reader.value(each.key) != Json(0) && reader.value(each.key) != Json("auto") &&
          !is_off(reader.value(each.key)))
        ignore(section + each.key, each.counted, each.changes);
  }

  void optimizer() {
    if (!config_.has("optimizer")) return;
    const std::string type = config_.object("optimizer").text_or("type", "adam");
    note_optimizer("\"optimizer/type\"", type, imported_);
  }

  // Type in which gradients add up (deepspeed/runtime/engine.py, get_data_types): the model's by default.
  void accumulation_type() {
    if (!config_.has("data_types")) return;
    const JsonReader types = config_.object("data_types");
    if (said("grad_accum_dtype", types)) {
      static const std::map<std::string, bool> wide = {{"fp32", true},  {"float32", true},  {"float", true},
                                                       {"fp16", false}, {"float16", false}, {"half", false},
                                                       {"bf16", false}, {"bfloat16", false}};
      if (types.choice("grad_accum_dtype", wide) && plan_.value("precision", "") != "fp32")
        plan_["recipe"] = "megatron";
    }
    note_unknown(types, "data_types/");
  }

  // Present, and not "auto", which leaves the value to the launcher and therefore to our defaults.
  bool said(const char* key, const JsonReader& reader) {
    if (!reader.has(key)) return false;
    if (reader.value(key) != Json("auto")) return true;
    note(fmt::format("\"{}\" is auto: defaults and flags apply", key));
    return false;
  }

  // deepspeed/runtime/precision_config.py.
  bool enabled(const char* section) {
    if (!config_.has(section)) return false;
    const JsonReader from = config_.object(section);
    for (const char* key : {"auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window",
                            "hysteresis", "consecutive_hysteresis", "min_loss_scale", "opt_level",
                            "immediate_grad_update", "check_grad_overflow", "loss_scale_root", "type"})
      from.has(key);
    for (const char* key :
         {"bf16_master_weights_and_grads", "bf16_optimizer_states", "fp16_master_weights_and_grads"})
      if (from.boolean_or(key, false))
        ignore(fmt::format("{}/{}", section, key),
               "master weights, gradients and moments are counted as without it", kLessMemory);
    // As pydantic reads it.
    const bool is_word =
        from.has("enabled") && (from.value("enabled") == "true" || from.value("enabled") == "false");
    is_auto_ = is_auto_ || (from.has("enabled") && from.value("enabled") == "auto");
    const bool on = is_word ? from.value("enabled") == "true"
                            : said("enabled", from) && from.boolean_or("enabled", false);
    note_unknown(from, std::string(section) + "/");
    return on;
  }

  void precision() {
    const bool half = enabled("fp16"), brain = enabled("bf16") || enabled("bfloat16");
    if (half && brain) config_.fail("fp16/enabled", "must not be true beside bf16/enabled", "", "false");
    if (half) plan_["precision"] = "fp16";
    if (brain) plan_["precision"] = "bf16";
    if (plan_["precision"] == "fp32" && is_auto_) plan_.erase("precision");
    autocast();
    if (said("communication_data_type", config_)) {
      static const std::map<std::string, std::string> types = {
          {"fp32", "fp32"}, {"fp16", "fp16"}, {"bf16", "bf16"}, {"bfp16", "bf16"}};
      plan_["grad_reduce"] = config_.choice("communication_data_type", types);
    }
  }

  // Modules run in 16 bits, and weights stay in fp32 (deepspeed/runtime/torch_autocast.py).
  void autocast() {
    if (!config_.has("torch_autocast")) return;
    const JsonReader from = config_.object("torch_autocast");
    static const std::map<std::string, std::string> types = {
        {"bfloat16", "bf16"}, {"bf16", "bf16"}, {"float16", "fp16"}, {"fp16", "fp16"}};
    const std::string type = from.has("dtype") ? from.choice("dtype", types) : "bf16";
    from.has("lower_precision_safe_modules");
    if (from.boolean_or("enabled", false)) {
      plan_["precision"] = type;
      is_autocast_ = true;
    }
    note_unknown(from, "torch_autocast/");
  }

  void degrees() {
    if (const std::int64_t ranks = config_.integer_or("sequence_parallel_size", 1, 1, 1 << 20); ranks > 1) {
      plan_["cp"] = ranks;  // DeepSpeed-Ulysses: deepspeed/sequence/layer.py
      plan_["cp_comm_type"] = "a2a";
    }
    if (config_.has("pipeline")) {
      const JsonReader pipeline = config_.object("pipeline");
      if (said("stages", pipeline)) plan_["pp"] = pipeline.integer("stages", 1, 1 << 20);
      plan_["schedule"] = "1f1b";
      cut_and_recompute(pipeline);
    }
    if (!config_.has("tensor_parallel")) return;
    const JsonReader tensor = config_.object("tensor_parallel");
    if (said("autotp_size", tensor)) plan_["tp"] = tensor.integer("autotp_size", 1, 1 << 20);
    if (tensor.boolean_or("tp_overlap_comm", false))
      note("\"tp_overlap_comm\" is ignored: no overlap is counted");
    for (const char* key : {"dtype", "partition_config", "preset_model", "injection_policy_tuple",
                            "keep_module_on_host", "replace_with_kernel_inject", "kernel_inject"})
      tensor.has(key);
    for (const char* key : {"tensor_parallel", "tp"})
      if (tensor.has(key)) note(fmt::format("\"tensor_parallel/{}\" is ignored: autotp_size decides", key));
    note_unknown(tensor, "tensor_parallel/");
  }

  // deepspeed/runtime/config.py, get_pipeline_config; pipe/module.py: the inputs of each so many layers stay.
  void cut_and_recompute(const JsonReader& pipeline) {
    const std::int64_t interval = pipeline.integer_or("activation_checkpoint_interval", 0, 0, 1 << 20);
    if (interval > 0) {
      plan_["recompute"] = "full";
      plan_["recompute_method"] = "uniform";
      plan_["recompute_num_layers"] = interval;
    }
    const std::string partition = pipeline.text_or("partition", "uniform");
    if (partition != "uniform")
      note(fmt::format("\"pipeline/partition\" {} is ignored: stages have equal numbers of layers",
                       partition));
    for (const char* key : {"pipe_partitioned", "grad_partitioned"})
      if (!pipeline.boolean_or(key, true))
        note(fmt::format("\"pipeline/{}\" false is ignored: each rank sends its part of an activation", key));
    for (const char* key : {"seed_layers", "pipe_schedule", "use_reentrant"}) pipeline.has(key);
    note_unknown(pipeline, "pipeline/");
  }

  // ZeRO-2 and ZeRO-3 reduce beside the backward pass or between its kernels. By default ZeRO-3 alone reduces
  // beside it (zero/config.py, overlap_comm_valid).
  void overlap(const JsonReader& zero, std::int64_t stage) {
    const bool overlaps = said("overlap_comm", zero) ? zero.boolean_or("overlap_comm", false) : stage == 3;
    plan_["overlap_grad_reduce"] = overlaps || stage >= 2;
    if (stage >= 2 && !overlaps)
      note(
          fmt::format("\"zero_optimization/overlap_comm\" is {}false: here gradient reduction overlaps "
                      "backward, so the step is predicted too fast",
                      zero.has("overlap_comm") ? "" : "by default "));
  }

  void zero_section() {
    if (said("zero_optimization", config_)) zero(config_.object("zero_optimization"));
    if (!is_autocast_) return;
    add_autocast(plan_);
    if (!plan_.contains("recipe"))
      note(
          "\"torch_autocast\" is approximated: beside ZeRO, weights are counted in 16 bits with a master "
          "copy, and not as fp32 ones that each pass casts");
  }

  void zero(const JsonReader& zero) {
    const std::int64_t stage = said("stage", zero) ? zero.integer("stage", 0, 3) : 0;
    plan_["zero"] = stage;
    overlap(zero, stage);
    if (said("reduce_bucket_size", zero)) {
      const double elements = zero.number("reduce_bucket_size", 0, kMaxBucket);
      const std::string wire = plan_.value("grad_reduce", plan_.value("precision", "bf16"));
      const double bytes = elements * (wire == "fp32" ? 4 : 2);
      if (bytes >= 1) plan_["bucket"] = fmt::format("{:.0f}B", bytes);
    }
    const std::int64_t secondary = zero.integer_or("zero_hpz_partition_size", 1, 1, 1 << 20);
    if (secondary > 1)
      ignore("zero_hpz_partition_size", "every gather spans all ranks", "more memory, less time");
    const std::int64_t mics = zero.integer_or("mics_shard_size", -1, -1, 1 << 20);
    if (mics > 0) plan_["zero_shard"] = mics;
    const bool older = zero.boolean_or("cpu_offload", false);
    const std::string device = device_of(zero, "offload_optimizer");
    if (older || !device.empty()) plan_["offload"] = "optimizer";
    if (device == "nvme")
      note(
          "\"zero_optimization/offload_optimizer/device\" nvme is counted as host memory: the slower reads "
          "and writes of the disks are not counted");
    if (!device_of(zero, "offload_param").empty())
      ignore("zero_optimization/offload_param", "parameters are counted on the GPU, without copies",
             "less memory, more time");
    for (const char* key : zero_free_keys()) zero.has(key);
    note_unmodelled(zero_unmodelled(), zero, "zero_optimization/");
    note_unknown(zero, "zero_optimization/");
  }

  // Device of a part of the state; "" is the GPU (deepspeed/runtime/zero/offload_config.py).
  std::string device_of(const JsonReader& zero, const char* key) {
    if (!said(key, zero) || zero.value(key) == Json(false)) return "";
    const JsonReader offload = zero.object(key);
    static const std::map<std::string, std::string> devices = {
        {"none", ""}, {"cpu", "cpu"}, {"nvme", "nvme"}};
    const std::string device = offload.has("device") ? offload.choice("device", devices) : "";
    if (offload.number_or("ratio", 1, 0, 1) < 1)
      note(fmt::format("\"zero_optimization/{}/ratio\" is ignored: all of the state is counted on the host",
                       key));
    for (const char* other :
         {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu", "pin_memory", "pipeline", "pipeline_read",
          "pipeline_write", "fast_init", "super_offload", "cpuadam_cores_perc"})
      offload.has(other);
    note_unknown(offload, std::string("zero_optimization/") + key + "/");
    return device;
  }

  std::int64_t batch_value(const char* key) {
    return said(key, config_) ? config_.integer(key, 1, kMaxBatch) : 0;
  }

  // Of train_batch_size alone, each rank takes its share as one microbatch (deepspeed/runtime/config.py,
  // _set_batch_related_parameters). 0 where a flag or "auto" decides.
  std::int64_t share_of(std::int64_t all, std::int64_t replicas) {
    const bool is_open =
        config_.has("train_micro_batch_size_per_gpu") || config_.has("gradient_accumulation_steps");
    if (is_open) return 0;
    if (replicas == 0)
      note("\"train_batch_size\" alone is one microbatch on each rank: pass --gpus, or --mbs");
    return replicas == 0 ? 0 : std::max<std::int64_t>(1, all / replicas);
  }

  // train_batch_size = micro batch x accumulation x data-parallel ranks; two of the three suffice.
  void batch() {
    const std::int64_t all = batch_value("train_batch_size"),
                       steps = batch_value("gradient_accumulation_steps");
    std::int64_t micro = batch_value("train_micro_batch_size_per_gpu");
    std::int64_t parts = 1;
    for (const char* key : {"pp", "tp", "cp"}) parts *= plan_.value(key, std::int64_t{1});
    const std::int64_t replicas = gpus_ > 0 ? std::max<std::int64_t>(1, gpus_ / parts) : 0;
    if (micro == 0 && all > 0 && steps > 0 && replicas > 0) micro = all / (steps * replicas);
    if (all > 0 && steps == 0 && micro == 0) micro = share_of(all, replicas);
    if (all == 0 && steps > 0 && (micro == 0 || replicas == 0)) imported_.accumulation = steps;
    if (micro > 0) plan_["micro_batch"] = micro;
    if (all > 0) plan_["global_batch"] = all;
    if (all == 0 && micro > 0 && replicas > 0)
      plan_["global_batch"] = micro * std::max<std::int64_t>(1, steps) * replicas;
    const bool whole = all > 0 && micro > 0 && steps > 0 && replicas > 0;
    if (whole && all != micro * steps * replicas)
      config_.fail("train_batch_size", "must be micro batch x gradient accumulation x data-parallel ranks",
                   fmt::format("{} and {} x {} x {}", all, micro, steps, replicas),
                   std::to_string(micro * steps * replicas));
  }

  void checkpointing() {
    if (!config_.has("activation_checkpointing")) return;
    const JsonReader section = config_.object("activation_checkpointing");
    for (const char* key : {"partition_activations", "cpu_checkpointing"})
      if (section.boolean_or(key, false))
        ignore(std::string("activation_checkpointing/") + key,
               "saved inputs are counted unsharded, on the GPU", "less memory, more time");
    for (const char* key : {"number_checkpoints", "contiguous_memory_optimization",
                            "synchronize_checkpoint_boundary", "profile"})
      section.has(key);
    note_unknown(section, "activation_checkpointing/");
    if (plan_.contains("recompute")) return;
    note(
        "\"activation_checkpointing\" sets how, not whether, the model recomputes: pass --recompute full if "
        "it does");
  }

  const JsonReader& config_;
  int gpus_;
  Imported imported_;
  Json plan_;
  bool is_autocast_ = false;
  bool is_auto_ = false;  // the precision, which the launcher decides
  std::vector<Violation> violations_;
  std::map<std::string, std::string> unknown_;  // by path: the nearest known key
};

}  // namespace

// Two of batch, microbatch and accumulation suffice: accumulation gives way to the command line's values.
Imported import_deepspeed(const JsonReader& config, int gpus, const SaidOverFile& over) {
  static constexpr KeyOfField kKeys[] = {{"/train_micro_batch_size_per_gpu", "/plan/micro_batch"},
                                         {"/zero_optimization/stage", "/plan/zero"},
                                         {"/pipeline/stages", "/plan/pp"},
                                         {"/tensor_parallel/autotp_size", "/plan/tp"}};
  Json said = with_command_line(config.json(), kKeys, over);
  const bool batch = over.contains("/plan/global_batch");
  if (batch) said.erase("train_batch_size");
  const bool says_batch = said.contains("train_batch_size") && said["train_batch_size"] != "auto";
  if (batch || (over.contains("/plan/micro_batch") && says_batch)) said.erase("gradient_accumulation_steps");
  std::vector<ImportedOption> decided;
  for (const auto& [key, value] : config.json().items())
    if (!said.contains(key))
      decided.push_back({key, value.dump(), "", OptionFate::ignored, "the command line decides", ""});
  const JsonReader reader(std::move(said), config.file());
  Imported imported = DeepSpeedReader(reader, gpus).read();
  imported.options.insert(imported.options.end(), decided.begin(), decided.end());
  return imported;
}

}  // namespace rehearse
