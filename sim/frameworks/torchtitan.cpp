#include <fmt/core.h>

#include <charconv>
#include <map>
#include <set>

#include "frameworks/imported.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/toml_text.h"
#include "frameworks/torch_defaults.h"
#include "frameworks/torchtitan_keys.h"
#include "frameworks/torchtitan_stages.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMax = std::int64_t{1} << 40;
constexpr std::int64_t kMaxDegree = std::int64_t{1} << 20;  // as of a plan's

// Flavours of torchtitan's models that ship with the program (torchtitan/models/*/__init__.py).
const std::map<std::string, std::string>& presets() {
  static const std::map<std::string, std::string> names = {{"llama3/8B", "llama3-8b"},
                                                           {"llama3/70B", "llama3-70b"},
                                                           {"llama3/405B", "llama3.1-405b"},
                                                           {"deepseek_v3/671B", "deepseek-v3"},
                                                           {"qwen3/8B", "qwen3-8b"},
                                                           {"qwen3/30B-A3B", "qwen3-30b-a3b"},
                                                           {"qwen3/235B-A22B", "qwen3-235b-a22b"}};
  return names;
}

class TorchtitanReader {
 public:
  // `file`: as the user wrote it, for the list of its options.
  TorchtitanReader(const JsonReader& config, const Json& file, int gpus, std::int64_t layers)
      : config_(config), file_(file), gpus_(gpus), layers_(layers) {}

  Imported read() {
    imported_.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + config_.file()}};
    if (gpus_ > 0) imported_.scenario["gpus"] = gpus_;
    plan_ = {{"framework", "torchtitan"}, {"precision", "bf16"}};
    model(section("model"));
    parallelism(section("parallelism"));
    training(section("training"));
    checkpointing(section("activation_checkpoint"));
    compiling(section("compile"));
    scaling();
    optimizer(section("optimizer"));
    unsharded();
    note_ignored_of_torchtitan(config_.json(), imported_);
    if (section("fault_tolerance").boolean_or("enable", false))
      note("\"fault_tolerance\" is ignored: replicas reduce gradients every step, as without it");
    imported_.scenario["plan"] = plan_;
    list_torchtitan_options(file_, imported_);
    settle_fates(imported_);
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  void ignore(const std::string& key, const std::string& counted, const std::string& changes) {
    note(fmt::format("\"{}\" is ignored: {}", key, counted));
    omit(imported_, key, counted, changes);
  }

  JsonReader section(const char* name) {
    if (config_.has(name)) return config_.object(name);
    return JsonReader(Json::object(), config_.file(), std::string("/") + name);
  }

  void model(const JsonReader& model) {
    const std::string name = model.text_or("name", "llama3"), flavor = model.text_or("flavor", "debugmodel");
    const auto preset = presets().find(name + "/" + flavor);
    if (preset != presets().end())
      imported_.scenario["model"] = preset->second;
    else
      note(fmt::format("model {} {} does not ship with the program: pass a config.json with --model", name,
                       flavor));
    if (model.has("converters")) converters(model);
    const std::string norm = model.text_or("norm_type", "rmsnorm");
    if (norm != "rmsnorm") note("\"model/norm_type\" " + norm + " is ignored: norms are RMSNorm");
  }

  // Precision of linear layers (torchtitan/components/quantization/). Experts stay in bf16 where no converter
  // names them.
  void converters(const JsonReader& model) {
    static const std::vector<std::string> known = {"float8",
                                                   "mx",
                                                   "quantize.linear.float8",
                                                   "quantize.linear.mx",
                                                   "quantize.grouped_mm.float8",
                                                   "quantize.grouped_mm.mx"};
    for (const Json& each : model.value("converters")) {
      const std::string name = each.is_string() ? each.get<std::string>() : each.dump();
      if (std::ranges::count(known, name) == 0) {
        const std::string near = nearest_name(name, known);
        if (near.empty()) {  // a fork's
          note("\"model/converters\" " + name +
               " is ignored: the GEMMs keep the precision that they have without it");
          continue;
        }
        model.fail("converters", "must be one of " + join(known), "found \"" + name + "\"", near);
      }
      if (name.starts_with("quantize.grouped_mm"))
        note("\"model/converters\" " + name +
             " is ignored: the GEMMs of experts have the precision of linear layers");
      else
        plan_["precision"] = "fp8";
      if (name == "mx" || name == "quantize.linear.mx") plan_["fp8_scaling"] = "mx";
    }
  }

  void optimizer(const JsonReader& from) {
    note_optimizer("\"optimizer/name\"", from.text_or("name", "AdamW"), imported_);
    static const std::map<std::string, bool> fuses = {
        {"fused", true}, {"foreach", false}, {"for-loop", false}};
    if (!from.choice_or("implementation", true, fuses) || !from.boolean_or("fused", true))
      plan_["fused_adam"] = false;
    if (from.boolean_or("early_step_in_backward", false))
      ignore("optimizer/early_step_in_backward", "all gradients are kept until the step", kLessMemory);
  }

  // [float8], later [quantize.linear.float8].
  void scaling() {
    JsonReader from = section("float8");
    if (config_.has("quantize") && config_.object("quantize").has("linear") &&
        config_.object("quantize").object("linear").has("float8"))
      from = config_.object("quantize").object("linear").object("float8");
    if (from.boolean_or("enable_float8_linear", false)) plan_["precision"] = "fp8";  // before converters
    const JsonReader old = section("training");
    if (old.has("fp8_linear") && old.value("fp8_linear") != Json(false) &&
        old.value("fp8_linear") != Json(""))
      plan_["precision"] = "fp8";  // to August 2024
    if (plan_["precision"] != "fp8" || plan_.contains("fp8_scaling")) return;
    // Releases of 2024 left the output layer out by themselves.
    bool keeps_output = from.has("enable_float8_linear") || old.has("fp8_linear");
    for (const Json& each : from.has("filter_fqns") ? from.value("filter_fqns") : Json::array())
      if (each == "output" || each == "lm_head")
        keeps_output = true;
      else
        stay_in_bf16_.push_back(each.is_string() ? each.get<std::string>() : each.dump());
    if (!keeps_output)
      note("\"filter_fqns\" leaves the output layer in FP8: its GEMMs are counted in bf16, which is slower");
    if (!stay_in_bf16_.empty())
      note(fmt::format("\"filter_fqns\" {} is ignored: all linear layers but the output are counted in FP8",
                       join(stay_in_bf16_)));
    static const std::map<std::string, bool> recipes = {
        {"tensorwise", false}, {"rowwise", true}, {"rowwise_with_gw_hp", true}};
    from.choice_or("recipe_name", false, recipes);
    if (from.text_or("recipe_name", "tensorwise").starts_with("rowwise"))
      plan_["fp8_scaling"] = "row";
    else if (from.boolean_or("enable_fsdp_float8_all_gather", false))
      plan_["fp8_scaling"] = "tensor-gathered";
  }

  // PyTorch's own RMSNorm is one kernel since 2.8, compiled or not.
  void compiling(const JsonReader& from) {
    const bool enabled = from.boolean_or("enable", section("training").boolean_or("compile", false));
    const auto compiles = [&](std::string_view component) {
      return enabled && (!from.has("components") ||
                         from.value("components").dump().find(component) != std::string::npos);
    };
    plan_["fused_rotary"] = plan_["fused_activation"] = compiles("model");
    plan_["fused_cross_entropy"] = compiles("loss");
    if (plan_.contains("tp_comm_overlap") && !compiles("model"))
      config_.object("parallelism")
          .fail("enable_async_tensor_parallel", "needs the model compiled, as torchtitan does",
                enabled ? "compile.components without \"model\"" : "compile.enable = false",
                "compile.enable = true");
    if (enabled)
      note("compile: the kernel times of the profile are used, without the compiler's own fusions");
  }

  std::int64_t degree(const JsonReader& from, const char* key) {
    return from.integer_or(key, 1, 1, kMaxDegree);
  }

  void parallelism(const JsonReader& from) {
    plan_["tp"] = degree(from, "tensor_parallel_degree");
    plan_["pp"] = pp_ = degree(from, "pipeline_parallel_degree");
    plan_["cp"] = degree(from, "context_parallel_degree");
    plan_["ep"] = degree(from, "expert_parallel_degree");
    if (from.has("expert_tensor_parallel_degree"))
      plan_["etp"] = degree(from, "expert_tensor_parallel_degree");
    static const std::map<std::string, std::string> backends = {
        {"standard", "standard"}, {"deepep", "deepep"}, {"hybridep", "hybridep"}};
    const std::string backend =
        from.choice_or("expert_parallel_comm_backend", std::string("standard"), backends);
    if (backend != "standard" && plan_["ep"] > 1) plan_["moe_dispatcher"] = backend;
    sharding(from);
    if (pp_ > 1) pipeline(from);
    static const std::map<std::string, std::string> rotations = {{"allgather", "allgather"},
                                                                 {"alltoall", "p2p"}};
    const std::string rotate =
        from.choice_or("context_parallel_rotate_method", std::string("allgather"), rotations);
    if (plan_["cp"] > 1) plan_["cp_comm_type"] = rotate;
    const bool async = from.boolean_or("enable_async_tensor_parallel", false);
    if (async && plan_["tp"] > 1) plan_["tp_comm_overlap"] = true;
    if (from.boolean_or("disable_loss_parallel", false) && plan_["tp"] > 1)
      note(
          "\"parallelism/disable_loss_parallel\" is ignored: each rank computes the loss of its part of the "
          "logits");
    for (const char* key :
         {"pipeline_parallel_split_points", "module_fqns_per_model_part",
          "pipeline_parallel_expert_parallel_overlap", "pipeline_parallel_first_stage_less_layers",
          "pipeline_parallel_last_stage_less_layers", "pipeline_parallel_layers_per_stage",
          "pipeline_parallel_microbatch_size", "pipeline_parallel_schedule",
          "pipeline_parallel_schedule_csv"})
      if (from.has(key) && !read_.contains(key) && pp_ > 1)
        note(fmt::format("\"{}\" is ignored: the other keys set stages and microbatches", key));
  }

  // Full sharding over the shard degree and context parallelism (torchtitan/distributed/parallel_dims.py,
  // fsdp_enabled), replicated across the other degree (FSDP2, HSDP).
  void sharding(const JsonReader& from) {
    const std::int64_t replicate = degree(from, "data_parallel_replicate_degree");
    std::int64_t shard = from.integer_or("data_parallel_shard_degree", -1, -1, kMaxDegree);
    const std::int64_t others = plan_["tp"].get<std::int64_t>() * pp_ * plan_["cp"].get<std::int64_t>();
    if (shard < 1 && gpus_ > 0) shard = std::max<std::int64_t>(1, gpus_ / others / replicate);
    dp_ = shard > 0 ? shard * replicate : 0;
    if (shard > 0) plan_["dp"] = dp_;
    const std::int64_t cp = plan_["cp"], ranks = shard * cp;
    plan_["zero"] = ranks == 1 ? 0 : 3;
    if (replicate > 1 && ranks > 1) plan_["zero_shard"] = ranks;
    const std::string reshard = from.text_or("fsdp_reshard_after_forward", "default");
    if (reshard != "default" && reshard != "always" && reshard != "never")
      from.fail("fsdp_reshard_after_forward", "must be default, always or never",
                "found \"" + reshard + "\"");
    if (reshard != "default") plan_["reshard_after_forward"] = reshard == "always";
  }

  void pipeline(const JsonReader& from) {
    if (from.has("pipeline_parallel_schedule_csv") && !from.text("pipeline_parallel_schedule_csv").empty()) {
      plan_["schedule"] = from.text("pipeline_parallel_schedule_csv");
    } else {
      const TorchtitanSchedule known = torchtitan_schedule(from);
      plan_["schedule"] = known.schedule;
      if (known.name == "InterleavedZeroBubble")
        note(
            "\"parallelism/pipeline_parallel_schedule\" InterleavedZeroBubble is modelled as "
            "Interleaved1F1B: its "
            "weight gradients fill bubbles that are counted here, so the step is predicted too slow");
      stages(from, plan_["schedule"] != "gpipe" && plan_["schedule"] != "1f1b");
    }
    microbatch_ = degree(from, "pipeline_parallel_microbatch_size");
    const JsonReader old = section("experimental");
    microbatches_ = old.integer_or("pipeline_parallel_microbatches", 0, 0, kMaxDegree);  // to early 2025
    const bool is_old = old.has("pipeline_parallel_degree") && !from.has("pipeline_parallel_microbatch_size");
    if (is_old && microbatches_ == 0)  // one for each stage (torchtitan/parallelisms/pipelining_utils.py)
      microbatches_ = pp_ * plan_.value("vpp", std::int64_t{1});
    read_.insert({"pipeline_parallel_microbatch_size", "pipeline_parallel_schedule",
                  "pipeline_parallel_schedule_csv"});
  }

  void stages(const JsonReader& from, bool several) {
    if (from.has("module_fqns_per_model_part")) return cut(torchtitan_modules(from, pp_));
    if (layers_ == 0) {
      if (several) plan_["vpp"] = 2;
      return note("the layers of each stage depend on the model: pass --model");
    }
    if (!from.has("pipeline_parallel_split_points")) cut(torchtitan_stages(from, layers_, pp_, several));
  }

  void cut(const TorchtitanStages& stages) {
    plan_["vpp"] = vpp_ = stages.chunks;
    if (!stages.layers.empty()) plan_["layers_per_stage"] = stages.layers;
    read_.insert({"module_fqns_per_model_part", "pipeline_parallel_first_stage_less_layers",
                  "pipeline_parallel_last_stage_less_layers", "pipeline_parallel_layers_per_stage"});
  }

  void training(const JsonReader& from) {
    const char* const size = from.has("batch_size") ? "batch_size" : "local_batch_size";  // to v0.1.0
    const std::int64_t local = from.integer_or(size, 8, 1, kMaxDegree);
    const std::int64_t global = from.integer_or("global_batch_size", -1, -1, kMax);
    const std::int64_t accumulated = degree(from, "gradient_accumulation_steps");  // of YerevaNN/YNNtitan
    plan_["seq"] = from.integer_or("seq_len", 2048, 1, kMax);
    if (microbatches_ > 0) microbatch_ = std::max<std::int64_t>(1, local / microbatches_);
    plan_["micro_batch"] = pp_ > 1 ? microbatch_ : local;
    if (global > 0)
      plan_["global_batch"] = global;
    else if (dp_ > 0)
      plan_["global_batch"] = local * dp_ * accumulated;
    else
      note("global batch is local_batch_size times the data-parallel ranks: pass --gpus");
    static const std::map<std::string, bool> narrow = {{"bfloat16", true}, {"float32", false}};
    if (!from.choice_or("mixed_precision_param", true, narrow)) plan_["precision"] = "fp32";
    if (from.choice_or("mixed_precision_reduce", false, narrow)) plan_["grad_reduce"] = "bf16";
    if (from.boolean_or("enable_cpu_offload", false)) {
      plan_["offload"] = "optimizer";
      note(std::string("\"training/enable_cpu_offload\" ") + kOffloadsAll);
      omit(imported_, "training/enable_cpu_offload", kOffloadsAll, kOffloadChanges);
    }
    plan_["clip_grad"] = from.number_or("max_norm", 1, 0, kMaxClipGrad);
    const bool is_narrow = from.choice_or("dtype", false, narrow);
    if (is_narrow && plan_["precision"] == "fp8")
      note(
          "\"training/dtype\" bfloat16 is ignored beside FP8: weights and optimizer state are counted in "
          "fp32");
    else if (is_narrow)
      plan_["recipe"] = "bf16";
  }

  // fully_shard sets the precision of sharded modules; torch.autocast sets that of replicas alone
  // (torchtitan/distributed/utils.py, maybe_enable_amp).
  void unsharded() {
    if (plan_["zero"] != 0 || plan_["precision"] != "bf16" || plan_.contains("recipe")) return;
    if (plan_["tp"] == 1 && pp_ == 1) {
      plan_["recipe"] = "autocast";
      return;
    }
    plan_["precision"] = "fp32";
    note(
        "\"parallelism/data_parallel_shard_degree\" 1 with tensor or pipeline parallelism: torchtitan then "
        "trains in fp32, whatever training.mixed_precision_param says");
  }

  void checkpointing(const JsonReader& from) {
    const std::string mode = from.text_or("mode", "selective");
    if (mode != "none" && mode != "selective" && mode != "full" && mode != "memory_budget")
      from.fail("mode", "must be none, selective or full", "found \"" + mode + "\"", "selective");
    if (mode == "full") plan_["recompute"] = "full";
    if (from.has("early_stop")) {
      const bool stops = from.boolean_or("early_stop", false);
      if (mode == "full") plan_["recompute_early_stop"] = stops;
    }
    const std::string option = from.text_or("selective_ac_option", "2");
    if (mode == "memory_budget") {
      note(
          "activation checkpointing by memory_budget is modelled as none: the prediction has more memory and "
          "less time");
      omit(imported_, "activation_checkpoint/mode memory_budget", "nothing is counted as recomputed",
           "less memory, more time");
    }
    if (mode != "selective") return;
    if (option == "op")
      plan_["recompute"] = "op";
    else
      every_layer(option);
  }

  // torchtitan/distributed/activation_checkpoint.py, _apply_layer_sac. Which of a stage's layers are
  // recomputed changes neither time nor memory.
  void every_layer(const std::string& option) {
    int step = 0;
    std::from_chars(option.data(), option.data() + option.size(), step);
    const std::int64_t again = step > 0 ? layers_ / (pp_ * vpp_) / step : 0;
    if (again == 0)
      return note(fmt::format("activation checkpointing of one layer in {} is modelled as none{}", option,
                              layers_ == 0 ? ": pass --model" : ""));
    plan_["recompute"] = "full";
    plan_["recompute_method"] = "block";
    plan_["recompute_num_layers"] = again;
  }

  const JsonReader& config_;
  const Json& file_;
  int gpus_;
  std::int64_t layers_;
  std::int64_t pp_ = 1, vpp_ = 1, dp_ = 0, microbatch_ = 1, microbatches_ = 0;
  std::set<std::string> read_;
  std::vector<std::string> stay_in_bf16_;  // layers
  Imported imported_;
  Json plan_;
};

}  // namespace

Imported import_torchtitan(const std::string& text, const std::string& file, int gpus, std::int64_t layers,
                           const SaidOverFile& over) {
  return import_torchtitan_json(read_toml(text, file), gpus, layers, over);
}

Imported import_torchtitan_json(const JsonReader& read, int gpus, std::int64_t layers,
                                const SaidOverFile& over) {
  static constexpr KeyOfField kKeys[] = {{"/parallelism/tensor_parallel_degree", "/plan/tp"},
                                         {"/parallelism/pipeline_parallel_degree", "/plan/pp"},
                                         {"/parallelism/context_parallel_degree", "/plan/cp"},
                                         {"/parallelism/expert_parallel_degree", "/plan/ep"},
                                         {"/training/seq_len", "/plan/seq"},
                                         {"/training/global_batch_size", "/plan/global_batch"}};
  const JsonReader parsed = with_one_parallelism(read);
  const JsonReader config(with_command_line(parsed.json(), kKeys, over), read.file());
  if (config.has("model") && config.value("model").is_object() &&
      config.value("model").value("name", Json()) == "flux")
    throw InputError({read.file(), "/model/name", "is a diffusion model, no decoder", "found flux",
                      "a file of llama3, qwen3 or deepseek_v3"});
  require_torchtitan_keys(config.json(), read.file());
  return TorchtitanReader(config, read.json(), gpus, layers).read();
}

}  // namespace rehearse
