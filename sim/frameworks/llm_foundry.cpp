#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "frameworks/fsdp_arguments.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/other_yaml.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/torch_defaults.h"

namespace rehearse {

namespace {

// Of llmfoundry/models/mpt/configuration_mpt.py and models/utils/config_defaults.py, at their defaults.
constexpr std::array kIgnoredOfMpt = {
    CountedKey{"attn_config.clip_qkv", "null", "queries, keys and values are counted without clipping"},
    CountedKey{"attn_config.qk_gn", "false", "no norm of queries and keys is counted"},
    CountedKey{"attn_config.fused_qkv", "true", "one GEMM is counted for queries, keys and values"},
    CountedKey{"attn_config.attn_uses_sequence_id", "false", "attention spans the whole sequence"},
    CountedKey{"attn_config.attn_logit_softcapping", "null", "no cap is counted"},
    CountedKey{"attn_config.rope_impl", "\"dail\"", "the profile's kernel of rotary positions is counted"},
    CountedKey{"final_logit_softcapping", "null", "no cap is counted"},
    CountedKey{"block_overrides", "null", "every block is counted alike",
               "less memory, more memory, less time, more time"},
    CountedKey{"embedding_fraction", "1", "the embedding's gradient is counted as it comes"},
    CountedKey{"logit_scale", "null", "the scale of the logits is not counted"},
    CountedKey{"emb_pdrop", "0", "no dropout of the embedding is counted"},
    CountedKey{"use_pad_tok_in_ffn", "true", "the MLP is counted for every token"},
    CountedKey{"activation_checkpointing_target", "null", "whole blocks are counted as recomputed"},
    CountedKey{"ffn_config.ffn_act_fn", "null", "GELU is counted, or SiLU in a gated MLP"},
    CountedKey{"additional_train_metrics", "null", "the metrics of llm-foundry's own list are counted"}};

// composer/distributed/dist_strategy.py and utils/parallelism.py (FSDPConfig), with the counted values.
constexpr std::array kIgnoredOfFsdp = {
    CountedKey{"activation_cpu_offload", "false", "activations are counted on the GPU",
               "less memory, more time"},
    CountedKey{"auto_wrap", "true", "each block is sharded by itself"},
    CountedKey{"backward_prefetch_limit", "1", "one block is gathered ahead"},
    CountedKey{"forward_prefetch_limit", "1", "one block is gathered ahead"},
    CountedKey{"keep_low_precision_grads", "false", "gradients are counted in fp32"},
    CountedKey{"process_group", "null", "every group is counted as Composer makes it"},
    CountedKey{"te_checkpoint_wrapper", "false", "PyTorch's checkpointing is counted"},
    CountedKey{"te_shard_fp8_weight", "false", "weights are counted as gathered in bf16"},
    CountedKey{"cpu_offload", "false", "Composer refuses it: the state is counted on the GPU"}};

// llmfoundry/utils/config_utils.py, TrainConfig.
constexpr std::array kIgnoredOfTrain = {
    CountedKey{"compile_config", "null", kUncompiled, "less time"},
    CountedKey{"tp_config", "null", "no tensor parallelism is counted: pass --tp", "less memory, more time"},
    CountedKey{"max_split_size_mb", "null", "memory is counted without fragmentation"},
    CountedKey{"expandable_segments", "true", "memory is counted without fragmentation"},
    CountedKey{"code_paths", "null", "the code that it names is not read, and may change network and step",
               "less memory, more memory, less time, more time"}};

// d_model x expansion_ratio, which may be a fraction, unless the size is given (models/layers/ffn.py).
std::int64_t ffn_of_mpt(PlanYaml& from, std::int64_t hidden) {
  const double ratio = from.number("model.expansion_ratio", 4);
  const auto wide = static_cast<std::int64_t>(static_cast<double>(hidden) * std::min(ratio, 1e6));
  return from.integer("model.ffn_config.ffn_hidden_size", wide);
}

const char* positions_of_mpt(PlanYaml& from) {
  const bool rotary = from.on("model.attn_config.rope"), alibi = from.on("model.attn_config.alibi");
  const bool learned = from.on("model.learned_pos_emb", true);
  return rotary ? "rope" : alibi ? "alibi" : learned ? "learned_absolute" : "none";
}

Json model_of_mpt(PlanYaml& from) {
  const auto size = [&](const char* key, std::int64_t fallback) {
    return from.integer(std::string("model.") + key, fallback, "", 1);
  };
  const std::int64_t hidden = size("d_model", 2048), heads = size("n_heads", 16);
  const std::int64_t groups = from.integer("model.attn_config.kv_n_heads", heads);
  const std::string attention = from.text("model.attn_config.attn_type");
  const std::string ffn = from.text("model.ffn_config.ffn_type");
  const std::string norm = from.text("model.norm_type");
  const bool biases = !from.on("model.no_bias"), gated = ffn == "mptglu" || ffn == "mptgeglu";
  if (!ffn.empty() && ffn != "mptmlp" && !gated)
    from.note("model.ffn_config.ffn_type", ffn + " is ignored: a plain MLP is counted");
  if (gated)
    from.note("model.ffn_config.ffn_type", ffn + " is approximated: SwiGLU, which has the same GEMMs");
  if (!biases)
    from.note("model.no_bias", "is approximated: LayerNorms keep their biases, which MPT drops too");
  Json config = {{"model_type", "megatron_gpt"},
                 {"num_hidden_layers", size("n_layers", 24)},
                 {"hidden_size", hidden},
                 {"intermediate_size", ffn_of_mpt(from, hidden)},
                 {"num_attention_heads", heads},
                 {"head_dim", size("head_dim", hidden / heads)},
                 {"num_key_value_heads", attention == "multiquery_attention"      ? 1
                                         : attention == "grouped_query_attention" ? groups
                                                                                  : heads},
                 {"max_position_embeddings", size("max_seq_len", 2048)},
                 {"vocab_size", size("vocab_size", 50368)},
                 {"normalization", norm.find("rms") != std::string::npos ? "RMSNorm" : "LayerNorm"},
                 {"activation", gated ? "swiglu" : "gelu"},
                 {"position_embedding_type", positions_of_mpt(from)},
                 {"qkv_bias", from.on("model.attention_bias", biases)},
                 {"attention_out_bias", biases},
                 {"mlp_bias", biases},
                 {"qk_layernorm", from.on("model.attn_config.qk_ln")},
                 {"hidden_dropout", from.number("model.resid_pdrop", 0)},
                 {"attention_dropout", from.number("model.attn_config.attn_pdrop", 0)},
                 {"tie_word_embeddings", from.on("model.tie_word_embeddings", true)}};
  if (const auto window = from.set_integer("model.attn_config.sliding_window_size"))
    config["sliding_window"] = *window;
  from.find("model.name");
  from.ignore_unless(kIgnoredOfMpt, "model.");
  return config;
}

// Kernels that MPT's own code launches for the network (models/mpt/modeling_mpt.py).
void add_kernels_of_mpt(PlanYaml& from, Json& plan) {
  if (from.text("model.attn_config.attn_impl") == "torch") plan["fused_attention"] = false;
  const std::string loss = from.text("model.loss_fn");
  plan["fused_cross_entropy"] = loss != "torch_crossentropy";
  plan["train_metrics"] = from.on("model.use_train_metrics", true) ? 3 : 0;  // metrics/__init__.py
  const Json* layer = from.find("model.fc_type");
  const std::string name = layer == nullptr     ? "torch"
                           : layer->is_string() ? layer->get<std::string>()
                                                : from.text("model.fc_type.name");
  if (plan["precision"] == "fp8" && name != "te") {
    from.note("precision",
              "amp_fp8 is counted as bf16: model.fc_type is not te, and no other layer computes in FP8");
    plan["precision"] = "bf16";
  }
}

// composer/distributed/shared_utils.py, get_mixed_precision: FULL leaves weights and gradients in fp32 on the
// wire, while torch.autocast still narrows the GEMMs.
void add_mixed_precision(PlanYaml& from, Json& plan) {
  const Json* mixed = from.find("fsdp_config.mixed_precision");
  const bool is_map = mixed != nullptr && mixed->is_object();
  const auto type = [&](const char* key) {
    return is_map ? from.text(std::string("fsdp_config.mixed_precision.") + key) : "";
  };
  const std::string name = is_map ? "" : in_upper_case(from.text("fsdp_config.mixed_precision"));
  const std::string reduce = is_map ? type("reduce_dtype") : name == "PURE" ? "low" : "fp32";
  const std::string gather = is_map ? type("param_dtype") : name == "FULL" ? "" : "low";
  if (is_map) type("buffer_dtype");
  if (!name.empty() && name != "PURE" && name != "FULL" && name != "DEFAULT")
    from.violations.push_back({"", from.place("fsdp_config.mixed_precision"), "must be PURE, DEFAULT or FULL",
                               "found " + name, "PURE"});
  const bool narrows = reduce == "low" || reduce.find("16") != std::string::npos;
  plan["grad_reduce"] = !narrows || plan["precision"] == "fp32" ? "fp32"
                        : plan["precision"] == "fp16"           ? "fp16"
                                                                : "bf16";
  if ((gather.empty() || gather.find("32") != std::string::npos) && plan["precision"] != "fp32")
    from.note("fsdp_config.mixed_precision",
              "is approximated: weights are counted as gathered in 16 bits, not fp32: too fast");
}

void add_groups(PlanYaml& from, const std::string& strategy, Json& plan) {
  const std::int64_t copies = from.set_integer("fsdp_config.data_parallel_replicate_degree").value_or(1);
  if (const auto shard = from.set_integer("fsdp_config.data_parallel_shard_degree"))
    plan["zero_shard"] = *shard;
  else if (copies > 1)
    from.note("fsdp_config.data_parallel_replicate_degree",
              "shards within a group: pass --zero-shard, its GPUs");
  else if (strategy.find("HYBRID") != std::string::npos)
    from.note("fsdp_config.sharding_strategy", "shards within a group: pass --zero-shard, its GPUs");
}

void add_sharding(PlanYaml& from, Json& plan) {
  static const std::map<std::string, int> stages = {{"FULL_SHARD", 3},
                                                    {"HYBRID_SHARD", 3},
                                                    {"SHARD_GRAD_OP", 2},
                                                    {"_HYBRID_SHARD_ZERO2", 2},
                                                    {"NO_SHARD", 0}};
  plan["zero"] = 0;
  plan["recompute"] = "none";
  if (from.find("fsdp_config") == nullptr) {  // DistributedDataParallel under torch.autocast
    return add_autocast(plan);
  }
  const std::string said = in_upper_case(from.text("fsdp_config.sharding_strategy"));
  const std::string strategy = said.empty() ? "FULL_SHARD" : said;
  const auto found = stages.find(strategy);
  if (found == stages.end())
    from.violations.push_back({"", from.place("fsdp_config.sharding_strategy"), "is no sharding strategy",
                               "found " + strategy, "FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD"});
  else
    plan["zero"] = found->second;
  add_groups(from, strategy, plan);
  add_mixed_precision(from, plan);
  const bool is_reentrant = from.on("fsdp_config.activation_checkpointing_reentrant", true);
  if (from.on("fsdp_config.activation_checkpointing")) {
    plan["recompute"] = "full";
    plan["recompute_early_stop"] = !is_reentrant;  // as only PyTorch's own checkpointing does
  }
  const std::string prefetch = in_upper_case(from.text("fsdp_config.backward_prefetch"));
  if (prefetch == "NONE") plan["prefetch"] = 0;
  if (prefetch.empty() || prefetch == "BACKWARD_POST")
    from.imported.notes.emplace_back(
        "fsdp_config.backward_prefetch BACKWARD_POST, Composer's default, is approximated: the next block is "
        "counted as gathered beside the backward pass of this one, so the step is predicted too fast");
  from.ignore_unless(kIgnoredOfFsdp, "fsdp_config.");
  from.ignore_unless(ignored_of_fsdp(), "fsdp_config.");
}

// The batch is of the whole job. A microbatch is never larger than a GPU's part (calculate_batch_size_info).
void add_batch(PlanYaml& from, std::int64_t gpus, Json& plan) {
  const std::int64_t all = from.integer("global_train_batch_size", 0, "/plan/global_batch", 1);
  const Json* said = from.find("device_train_microbatch_size");
  if (said == nullptr || *said == "auto")
    from.note("device_train_microbatch_size",
              said == nullptr ? "is not given, which means auto, chosen at run time: pass --mbs"
                              : "is chosen at run time: pass --mbs");
  else if (const std::int64_t micro = from.integer("device_train_microbatch_size", 0, "/plan/micro_batch", 1);
           micro > 0)
    plan["micro_batch"] = all > 0 && gpus > 0 ? std::clamp<std::int64_t>(all / gpus, 1, micro) : micro;
  if (all > 0) plan["global_batch"] = all;
  const std::int64_t longest = from.integer("max_seq_len", 0, "/plan/seq", 1);
  const std::int64_t seq = from.integer("train_loader.dataset.max_seq_len", longest, "/plan/seq", 1);
  if (seq > 0) plan["seq"] = seq;
  if (from.text("train_loader.name") == "finetuning")
    from.imported.notes.emplace_back(
        "train_loader.name finetuning is approximated: every sequence has its full length");
}

// A file for the scheduler of MosaicML, which hands `parameters` to the program.
YamlText parameters_of(const YamlText& yaml, const std::string& file) {
  YamlText inner;
  inner.json = yaml.json["parameters"];
  const std::string before = "/parameters";
  for (const auto& [pointer, line] : yaml.lines)
    if (pointer.starts_with(before)) inner.lines[pointer.substr(before.size())] = line;
  write_out_paths(inner.json, file);
  return inner;
}

bool is_wrapped(const Json& yaml) {
  return yaml.is_object() && yaml.contains("parameters") && is_llm_foundry(yaml["parameters"]);
}

std::int64_t gpus_of_wrapper(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request, Typing::strict);
  std::int64_t gpus = 0;
  for (const char* key : {"gpu_num", "compute.gpus"}) gpus = from.integer(key, gpus, "/gpus", 1);
  if (!from.violations.empty()) throw InputError(std::move(from.violations));
  return std::min<std::int64_t>(gpus, 1 << 24);
}

// Keys without effect on the time and memory of a step.
const std::set<std::string>& free_of_llm_foundry() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> all = keys_of(
        "accumulate_train_batch_on_tokens autoresume callbacks console_log_interval cuda_load_lazy "
        "data_local data_remote device_eval_batch_size dist_timeout eval_first eval_gauntlet "
        "eval_interval eval_loader eval_loaders eval_subset_num_batches experiment flatten_metadata "
        "fsdp_config.load_planner fsdp_config.save_planner "
        "fsdp_config.sharded_ckpt_prefix_dir "
        "fsdp_config.verbose global_seed "
        "icl_seq_len icl_subset_num_batches icl_tasks load_ignore_keys load_path "
        "load_strict_model_weights load_weights_only log_config log_to_console loggers max_duration "
        "metadata model.attn_config.alibi_bias_max model.attn_config.rope_dail_config "
        "model.attn_config.rope_hf_config model.attn_config.rope_theta "
        "model.attn_config.softmax_scale model.init_config model.init_device model.norm_eps "
        "model.pretrained model.trust_remote_code model.use_auth_token model.use_cache "
        "only_composer_checkpoint only_hf_checkpoint optimizer profiler progress_bar "
        "python_log_level run_name save_filename save_folder save_ignore_keys save_interval "
        "save_latest_filename save_num_checkpoints_to_keep save_overwrite save_weights_only "
        "scheduler seed spin_dataloaders tokenizer tokenizer_name train_loader "
        "train_subset_num_batches variables");
    all.merge(free_of_fsdp("fsdp_config."));
    return all;
  }();
  return keys;
}

Imported read(const YamlText& yaml, const std::string& file, const ImportRequest& request,
              std::int64_t gpus) {
  PlanYaml from(yaml, file, request, Typing::words);  // OmegaConf, TrainConfig
  static const std::map<std::string, std::string> types = {
      {"amp_bf16", "bf16"}, {"amp_fp16", "fp16"}, {"amp_fp8", "fp8"}, {"fp32", "fp32"}, {"", "bf16"}};
  Json plan = {{"framework", "fsdp1"}};  // composer/distributed/dist_strategy.py
  const std::string precision = from.text("precision");
  const auto type = types.find(precision);
  if (type == types.end())
    from.violations.push_back({file, from.place("precision"), "must be amp_bf16, amp_fp16, amp_fp8 or fp32",
                               "found " + precision, "amp_bf16"});
  plan["precision"] = type == types.end() ? "bf16" : type->second;
  add_batch(from, request.gpus > 0 ? request.gpus : gpus, plan);
  plan["clip_grad"] = from.number("algorithms.gradient_clipping.clipping_threshold", 0);
  from.ignore_unless("algorithms.gradient_clipping.clipping_type", "norm",
                     "the norm of all gradients is counted");
  const std::string optimizer = from.text("optimizer.name");
  if (!optimizer.empty()) note_optimizer(from.place("optimizer.name"), optimizer, from.imported);
  const std::string model = from.text("model.name");
  if (model == "mpt_causal_lm") {
    from.imported.model = model_of_mpt(from);
    add_kernels_of_mpt(from, plan);
  } else {
    from.note("model.name", fmt::format("{} {} is not looked up: pass --model NAME|config.json", model,
                                        from.text("model.pretrained_model_name_or_path")));
    from.ignore_unless("model.config_overrides", Json::object(), "the model that --model names is counted");
    from.ignore_unless("model.peft_config", nullptr, "all parameters are counted as trained",
                       "less memory, less time");
    add_eager_transformers(from.imported, plan);
    for (const char* key : {"model.use_flash_attention_2", "model.attn_implementation"})
      if (from.text(key) == "eager") plan["fused_attention"] = false;
  }
  add_sharding(from, plan);
  for (Violation& each : from.violations) each.file = file;
  from.ignore_unless(kIgnoredOfTrain);
  from.write_gpus(gpus);
  from.imported.scenario["plan"] = plan;
  return from.finish(free_of_llm_foundry());
}

}  // namespace

bool is_llm_foundry(const Json& yaml) {
  if (is_wrapped(yaml)) return true;
  return yaml.is_object() && yaml.contains("train_loader") && yaml.contains("model") &&
         yaml["model"].is_object();
}

Imported import_llm_foundry(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  if (!is_wrapped(yaml.json)) return read(yaml, file, request, 0);
  return read(parameters_of(yaml, file), file, request, gpus_of_wrapper(yaml, file, request));
}

}  // namespace rehearse
