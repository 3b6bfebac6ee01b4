#include "frameworks/olmo_core_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "frameworks/optimizer_note.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxOlmoDegree = std::int64_t{1} << 20;
constexpr std::int64_t kGpusOfANode = 8;  // internal/common.py, build_launch_config
constexpr const char* kTrain = "train_module.";

class OlmoCore {
 public:
  OlmoCore(const PythonSettings& found, const YamlText& yaml, const std::string& file,
           const ImportRequest& request)
      : found_(found), request_(request), from_(yaml, file, request, Typing::words) {}

  Imported read() {
    const auto& words = request_.shell.arguments;
    require_known_of_olmo_core(found_, words.empty() ? from_.file() : from_.file() + " " + words.front(),
                               from_);
    plan_ = {{"framework", "torchtitan"}};
    from_.imported.notes.emplace_back(
        "OLMo-core is counted as torchtitan, whose libraries it shares: FSDP2, DTensor and torchao's FP8");
    batch();
    gpus();
    degrees();
    sharding();
    precision();
    recompute();
    kernels();
    optimizer();
    ignore_of_olmo_core(from_);
    network();
    callbacks(experiment_.value("trainer", Json()));
    from_.imported.scenario["plan"] = plan_;
    for (const char* section : {"launch", "dataset"})
      drop_section(section, experiment_.value(section, Json()));
    std::set<std::string> free = free_of_olmo_core();
    free.insert(unused_.begin(), unused_.end());
    return from_.finish(free);
  }

 private:
  std::int64_t over(const std::string& pointer, std::int64_t fallback) const {
    const auto said = request_.over.find(pointer);
    const Json value = said == request_.over.end() ? Json() : Json::parse(said->second, nullptr, false);
    return value.is_number_integer() && value > 0 && value < kMaxOlmoDegree ? value.get<std::int64_t>()
                                                                            : fallback;
  }

  std::string text(const std::string& key) { return from_.text(kTrain + key); }
  bool has(const std::string& key) { return from_.find(kTrain + key) != nullptr; }

  // Both batch sizes are tokens: of a rank's microbatch, and of a step (data/data_loader.py).
  void batch() {
    const std::int64_t longest = from_.integer("train_module.max_sequence_length", 0, "/plan/seq", 1);
    const std::int64_t said = from_.integer("dataset.sequence_length", longest, "/plan/seq", 1);
    seq_ = over("/plan/seq", std::max<std::int64_t>(1, said));
    plan_["seq"] = seq_;
    plan_["micro_batch"] = sequences("train_module.rank_microbatch_size", "/plan/micro_batch", 1);
    if (const std::int64_t all = sequences("data_loader.global_batch_size", "/plan/global_batch"); all > 0)
      plan_["global_batch"] = all;
    else
      from_.imported.notes.emplace_back("data_loader.global_batch_size is not given: pass --gbs");
    if (from_.on("dataset.generate_doc_lengths"))
      from_.note("dataset.generate_doc_lengths",
                 "is approximated: attention spans the whole sequence, not each document");
  }

  // train/train_module/transformer/train_module.py and data/data_loader.py refuse tokens of half a sequence.
  std::int64_t sequences(const char* key, const char* pointer, std::int64_t least = 0) {
    const std::int64_t tokens = from_.integer(key, 0, pointer, 1),
                       near = std::max(seq_, tokens / seq_ * seq_);
    if (tokens % seq_ != 0 && !from_.is_over(pointer))
      from_.violations.push_back({from_.file(), from_.place(key),
                                  "must be a multiple of the sequence length, as OLMo-core requires",
                                  fmt::format("{} tokens, sequences of {}", tokens, seq_),
                                  fmt::format("{} or {}", near, near + seq_)});
    return std::max(least, tokens / seq_);
  }

  void gpus() {
    const std::int64_t nodes = std::min(from_.integer("launch.num_nodes", 0, "/gpus"), kMaxOlmoDegree);
    per_node_ =
        std::clamp<std::int64_t>(from_.integer("launch.num_gpus", kGpusOfANode, "/gpus"), 1, kMaxOlmoDegree);
    gpus_ = request_.gpus > 0 ? request_.gpus : nodes * per_node_;
    from_.write_gpus(gpus_);
    if (gpus_ == 0) from_.imported.notes.emplace_back("the script names no number of nodes: pass --gpus");
  }

  std::int64_t degree(const char* section) {
    const std::string path = fmt::format("{}{}.degree", kTrain, section);
    return std::clamp<std::int64_t>(from_.set_integer(path).value_or(1), 1, kMaxOlmoDegree);
  }

  void degrees() {
    tp_ = over("/plan/tp", degree("tp_config"));
    cp_ = over("/plan/cp", degree("cp_config"));
    pp_ = over("/plan/pp", degree("pp_config"));
    for (const auto& [key, value] : {std::pair{"tp", tp_}, {"cp", cp_}, {"pp", pp_}})
      if (value > 1) plan_[key] = value;
    if (tp_ > 1) plan_["sequence_parallel"] = true;  // distributed/parallel/tensor_parallel.py
    if (cp_ > 1) context();
    if (pp_ > 1) pipeline();
  }

  // nn/attention/ring.py: Llama 3's style gathers keys and values, zig-zag passes them on.
  void context() {
    std::string style = text("cp_config.style");
    if (has("cp_config.uly")) style = "ulysses";
    if (has("cp_config.ring")) style = text("cp_config.ring.load_balancer");
    plan_["cp_comm_type"] = style == "ulysses" ? "a2a" : style == "llama3" ? "allgather" : "p2p";
  }

  // distributed/parallel/pipeline_parallel.py.
  void pipeline() {
    static const std::map<std::string, std::string> schedules = {{"single_1F1B", "1f1b"},
                                                                 {"1F1B", "1f1b"},
                                                                 {"gpipe", "gpipe"},
                                                                 {"GPipe", "gpipe"},
                                                                 {"interleaved_1F1B", "interleaved-1f1b"},
                                                                 {"Interleaved1F1B", "interleaved-1f1b"},
                                                                 {"zbv_zero_bubble", "zb-v"},
                                                                 {"ZBVZeroBubble", "zb-v"}};
    const std::string name = text("pp_config.schedule");
    const auto found = schedules.find(name.empty() ? "interleaved_1F1B" : name);
    plan_["schedule"] = found == schedules.end() ? "interleaved-1f1b" : found->second;
    if (found == schedules.end())
      from_.note("train_module.pp_config.schedule", name + " is approximated: interleaved 1F1B is counted");
    if (plan_["schedule"] != "1f1b" && plan_["schedule"] != "gpipe") plan_["vpp"] = 2;
    from_.ignore_unless("train_module.pp_config.split_points", nullptr,
                        "stages are counted with equal layers");
    from_.find("train_module.pp_config.style");
    plan_["reshard_after_forward"] = false;  // nn/transformer/model.py, apply_fsdp
  }

  // distributed/parallel/data_parallel.py: hsdp has a replica for each node by default. Context parallelism
  // widens the group that shards (distributed/parallel/__init__.py, _get_model_mesh).
  void sharding() {
    const std::string name = text("dp_config.name");
    if (!name.empty() && name != "fsdp" && name != "hsdp" && name != "ddp")
      from_.violations.push_back({from_.file(), from_.place("train_module.dp_config.name"),
                                  "must be fsdp, hsdp or ddp", "found " + name, "hsdp"});
    const std::int64_t replicas = std::max<std::int64_t>(1, gpus_ / (tp_ * cp_ * pp_));
    std::int64_t copies = 1, shard = replicas;
    const std::int64_t said_copies = from_.integer("train_module.dp_config.num_replicas", 0);
    const std::int64_t said_shard = from_.integer("train_module.dp_config.shard_degree", 0);
    if (name == "hsdp") {
      const std::int64_t nodes = std::max<std::int64_t>(1, gpus_ / per_node_);
      copies = said_copies > 0 ? said_copies : said_shard > 0 ? replicas / said_shard : nodes;
      copies = std::clamp<std::int64_t>(copies, 1, replicas);
      shard = said_shard > 0 ? std::min(said_shard, kMaxOlmoDegree)
                             : std::max<std::int64_t>(1, replicas / copies);
    }
    for (const auto& [key, said] : {std::pair{"num_replicas", said_copies}, {"shard_degree", said_shard}})
      if (said > 0 && name != "hsdp")
        from_.note(fmt::format("{}dp_config.{}", kTrain, key), "is ignored, as OLMo-core does without hsdp");
    const bool shards = name == "fsdp" || name == "hsdp";
    plan_["zero"] = shards ? 3 : 0;
    if (shards && copies > 1) plan_["zero_shard"] = shard * cp_;
    if (name == "ddp") plan_["bucket"] = "104857600B";  // 100 MB (nn/transformer/model.py, apply_ddp)
    if (has("ep_config")) experts(name, shard);
    const std::string wrap = text("dp_config.wrapping_strategy");
    if (wrap == "fine_grained" || wrap == "blocks")
      from_.note("train_module.dp_config.wrapping_strategy",
                 wrap + " is approximated: each block, and the head, is counted as one unit");
    if (const std::int64_t ahead = from_.integer("train_module.dp_config.prefetch_factor", 0); ahead > 1)
      from_.note("train_module.dp_config.prefetch_factor",
                 fmt::format("{} is approximated: the next block alone is counted as gathered ahead", ahead));
  }

  // Experts are split over the ranks that shard (build_world_mesh).
  void experts(const std::string& data, std::int64_t shard) {
    const std::int64_t degree = from_.set_integer("train_module.ep_config.degree").value_or(shard);
    if (degree > 1) plan_["ep"] = std::min(degree, kMaxOlmoDegree);
    if (gpus_ == 0)
      from_.note("train_module.ep_config", "splits experts over the ranks that shard: pass --gpus, or --ep");
    if (data != "hsdp")
      from_.note("train_module.ep_config",
                 "needs hsdp, as OLMo-core does: experts are counted as split all the same");
  }

  void precision() {
    const auto word = [](const std::string& type) {
      return type.find("bfloat16") != std::string::npos ? "bf16"
             : type.find("16") != std::string::npos     ? "fp16"
                                                        : "fp32";
    };
    const std::string param = text("dp_config.param_dtype"), reduce = text("dp_config.reduce_dtype");
    const std::string cast = text("autocast_precision"), own = from_.text("model.dtype");
    plan_["precision"] = word(param.empty() ? own : param);
    plan_["grad_reduce"] = word(reduce.empty() ? "float32" : reduce);
    if (param.empty() && !cast.empty()) {
      plan_["precision"] = word(cast);
      if (plan_["zero"] == 0)
        plan_["recipe"] = "autocast";
      else
        from_.note("train_module.autocast_precision",
                   "is approximated: weights are counted as gathered in 16 bits, not fp32: too fast");
    }
    if (text("dp_config.name") == "ddp" && plan_["precision"] != "fp32" && !plan_.contains("recipe")) {
      plan_["recipe"] = "bf16";  // apply_ddp casts the weights themselves
      plan_["grad_reduce"] = plan_["precision"];
    }
    if (own.find("16") != std::string::npos) plan_["recipe"] = "bf16";  // shards of the model's own type
    float8();
    plan_["clip_grad"] = from_.number("train_module.max_grad_norm", 0);
  }

  // float8/__init__.py: torchao scales by tensor by default.
  void float8() {
    if (!has("float8_config")) return;
    const bool enabled = from_.on("train_module.float8_config.enabled", true);
    const std::string recipe = text("float8_config.ao_recipe");
    const bool gathers = from_.on("train_module.float8_config.ao.enable_fsdp_float8_all_gather");
    const bool is_mx = has("float8_config.ao_mx");
    if (!enabled) {
      drop_section("train_module.float8_config", experiment_["train_module"].value("float8_config", Json()));
      return;
    }
    plan_["precision"] = "fp8";
    if (is_mx)
      plan_["fp8_scaling"] = "mx";
    else if (recipe.starts_with("rowwise"))
      plan_["fp8_scaling"] = "row";
    else if (gathers)
      plan_["fp8_scaling"] = "tensor-gathered";
  }

  // Marks keys that set nothing, unless they are read.
  void drop_section(const std::string& path, const Json& section) {
    if (!section.is_object()) unused_.insert(path);
    for (const auto& [key, value] : section.items()) unused_.insert(path + "." + key);
  }

  // nn/transformer/model.py, apply_activation_checkpointing. PyTorch's wrapper stops early.
  void recompute() {
    plan_["recompute"] = "none";
    if (!has("ac_config")) return;
    const std::string said = text("ac_config.mode"), mode = said.empty() ? "full" : said;
    if (mode == "full" || mode == "selected_blocks") {
      plan_["recompute"] = "full";
      plan_["recompute_early_stop"] = true;
    }
    if (mode == "selected_ops") plan_["recompute"] = "op";
    if (mode == "selected_blocks") blocks(from_.integer("train_module.ac_config.block_interval", 1));
    if (mode == "selected_modules") modules();
    if (mode == "budget") budget(from_.number("train_module.ac_config.activation_memory_budget", 1));
    if (!keys_of("full selected_blocks selected_ops selected_modules budget").contains(mode))
      from_.note("train_module.ac_config.mode", mode + " is ignored: nothing is counted as recomputed");
  }

  void blocks(std::int64_t interval) {
    const std::int64_t layers = from_.integer("model.n_layers", 0);
    if (layers == 0)
      return from_.note(
          "train_module.ac_config.block_interval",
          "is approximated: all blocks are counted; the word model.n_layers=N gives their number");
    const std::int64_t chunks = pp_ * plan_.value("vpp", std::int64_t{1});
    plan_["recompute_method"] = "block";
    plan_["recompute_num_layers"] =
        std::max<std::int64_t>(1, layers / chunks / std::max<std::int64_t>(1, interval));
  }

  // Globs of names of modules.
  void modules() {
    const Json* patterns = from_.find("train_module.ac_config.modules");
    std::set<std::string> ends;
    for (const Json& each : patterns != nullptr && patterns->is_array() ? *patterns : Json::array())
      ends.insert(each.is_string() ? olmo_core_word(each) : each.dump());
    if (ends == std::set<std::string>{"feed_forward"}) {
      plan_["recompute"] = "selective";
      plan_["recompute_modules"] = "mlp";
      return;
    }
    from_.note(
        "train_module.ac_config.modules",
        fmt::format("{} is ignored: nothing is counted as recomputed, which takes more memory and less time",
                    join({ends.begin(), ends.end()}).substr(0, 200)));
  }

  // torch._functorch's solver chooses the operations to recompute: all of them at 0, none at 1.
  void budget(double share) {
    if (share <= 0) {
      plan_["recompute"] = "full";
      plan_["recompute_early_stop"] = true;
    }
    if (share > 0 && share < 1)
      from_.note(
          "train_module.ac_config.activation_memory_budget",
          fmt::format("{} is approximated: nothing is counted as recomputed, which takes more memory and "
                      "less time",
                      share));
  }

  // compile_model compiles the blocks and the head, with the loss.
  void kernels() {
    const bool compiles = from_.on("train_module.compile_model");
    const Json* block = from_.find("model.block");
    const bool is_fused = block != nullptr && block->dump().find("\"fused_rms\"") != std::string::npos;
    plan_["fused_norm"] = compiles || is_fused;
    plan_["fused_rotary"] = plan_["fused_activation"] = plan_["fused_cross_entropy"] = compiles;
    if (compiles)
      from_.imported.notes.emplace_back(
          "compile_model: the kernel times of the profile are used, without the compiler's own fusions");
    const Json* head = from_.find("model.lm_head");
    if (head != nullptr && head->is_object() &&
        head->value("loss_implementation", Json()) == "fused_linear") {
      plan_["fused_cross_entropy"] = true;
      from_.note(
          "model.lm_head",
          "loss_implementation fused_linear is approximated: the logits of all tokens are counted at once, "
          "which takes more memory");
    }
    if (block != nullptr) capacity(*block);
  }

  // nn/moe/moe.py: a fixed number of tokens for each expert, unless it is dropless.
  void capacity(const Json& block) {
    const Json experts = block.is_object() ? block.value("feed_forward_moe", Json()) : Json();
    if (!experts.is_object() || experts.value("name", Json()) == "dropless") return;
    const Json factor = experts.value("capacity_factor", Json());
    plan_["moe_capacity"] = factor.is_number() && factor > 0 && factor < 1e6 ? factor : Json(1.2);
  }

  // optim/adamw.py: SkipStepAdamW takes a kernel for each operation unless it is compiled.
  void optimizer() {
    const std::string type = text("optim.type");
    const bool is_adam = type.empty() || type == "AdamWConfig" || type == "SkipStepAdamWConfig" ||
                         type == "AdamConfig" || type == "SkipStepAdamConfig";
    const bool compiles = from_.on("train_module.optim.compile");
    plan_["fused_adam"] = compiles || from_.on("train_module.optim.fused");
    from_.ignore_unless("train_module.optim.foreach", true,
                        "a kernel is counted for all tensors of an operation");
    const std::string bare = type.ends_with("Config") ? type.substr(0, type.size() - 6) : type;
    if (!is_adam) {
      const std::string name = bare.starts_with("SkipStep") ? bare.substr(8) : bare;
      note_optimizer(from_.place("train_module.optim"), name, from_.imported);
    }
    from_.ignore_unless("train_module.optim.dtype", "float32", "moments are counted in fp32", kLessMemory);
  }

  void network() {
    for (const char* key : {"d_model", "vocab_size", "n_layers", "block_pattern", "block_overrides", "name",
                            "tie_word_embeddings", "block_mods"})
      from_.find(std::string("model.") + key);
    if (from_.is_over("/model")) return;
    from_.ignore_unless("model.freeze_params", nullptr, "all parameters are counted as trained",
                        "less memory, less time");
    const std::string made = made_by(experiment_.value("model", Json()));
    from_.imported.notes.push_back("the network is that of " + (made.empty() ? "OLMo-core" : made) +
                                   ": pass --model NAME|config.json");
  }

  // Parts of the trainer that change a step during the run, in whatever call they stand.
  void callbacks(const Json& value) {
    if (!value.is_structured()) return;
    const bool is_off = value.is_object() && value.value("enabled", Json()) == false;
    for (const char* part :
         {"Scheduler", "GAPMonitor", "Profiler", "MonkeyPatcher", "ModelMerge", "StabilityMonitor"})
      if (!is_off && made_by(value).find(part) != std::string::npos)
        from_.imported.notes.push_back(fmt::format(
            "callback {} is ignored: its steps are counted as any other", olmo_core_word(made_by(value))));
    for (const Json& each : value) callbacks(each);
  }

  const PythonSettings& found_;
  const Json& experiment_ = found_.json;  // with the names of calls
  const ImportRequest& request_;
  PlanYaml from_;
  Json plan_;
  std::int64_t seq_ = 1, gpus_ = 0, per_node_ = kGpusOfANode, tp_ = 1, cp_ = 1, pp_ = 1;
  std::set<std::string> unused_;
};

}  // namespace

std::string olmo_core_word(const Json& value) {
  if (!value.is_string()) return "";
  const std::string text = value.get<std::string>();
  return text.substr(text.find_last_of('.') + 1);
}

Imported olmo_core_plan(const PythonSettings& experiment, const YamlText& yaml, const std::string& file,
                        const ImportRequest& request) {
  return OlmoCore(experiment, yaml, file, request).read();
}

}  // namespace rehearse
