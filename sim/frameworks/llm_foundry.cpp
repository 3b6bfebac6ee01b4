#include <fmt/core.h>

#include <map>

#include "frameworks/optimizer_note.h"
#include "frameworks/other_yaml.h"
#include "frameworks/plan_yaml.h"

namespace rehearse {

namespace {

// llmfoundry/models/mpt/configuration_mpt.py of v0.18, with its defaults.
Json model_of_mpt(PlanYaml& from) {
  const auto size = [&](const char* key, std::int64_t fallback) {
    return from.integer(std::string("model.") + key, fallback);
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
  const bool rotary = from.on("model.attn_config.rope"), alibi = from.on("model.attn_config.alibi");
  const bool learned = !rotary && !alibi && from.on("model.learned_pos_emb", true);
  const double dropout = from.number("model.resid_pdrop", 0);
  Json config = {{"model_type", "megatron_gpt"},
                 {"num_hidden_layers", size("n_layers", 24)},
                 {"hidden_size", hidden},
                 {"intermediate_size",
                  from.integer("model.ffn_config.ffn_hidden_size", hidden * size("expansion_ratio", 4))},
                 {"num_attention_heads", heads},
                 {"num_key_value_heads", attention == "multiquery_attention"      ? 1
                                         : attention == "grouped_query_attention" ? groups
                                                                                  : heads},
                 {"max_position_embeddings", size("max_seq_len", 2048)},
                 {"vocab_size", size("vocab_size", 50368)},
                 {"normalization", norm.find("rms") != std::string::npos ? "RMSNorm" : "LayerNorm"},
                 {"activation", gated ? "swiglu" : "gelu"},
                 {"position_embedding_type", rotary    ? "rope"
                                             : alibi   ? "alibi"
                                             : learned ? "learned_absolute"
                                                       : "none"},
                 {"qkv_bias", biases},
                 {"attention_out_bias", biases},
                 {"mlp_bias", biases},
                 {"qk_layernorm", from.on("model.attn_config.qk_ln")},
                 {"hidden_dropout", dropout},
                 {"attention_dropout", from.number("model.attn_config.attn_pdrop", 0)},
                 {"tie_word_embeddings", from.on("model.tie_word_embeddings", true)}};
  if (const std::int64_t window = from.integer("model.attn_config.sliding_window_size", 0); window > 0)
    config["sliding_window"] = window;
  for (const char* key : {"name", "init_device", "attn_config.attn_impl"})
    from.find(std::string("model.") + key);
  return config;
}

void add_sharding(PlanYaml& from, Json& plan) {
  static const std::map<std::string, int> stages = {{"FULL_SHARD", 3},
                                                    {"HYBRID_SHARD", 3},
                                                    {"SHARD_GRAD_OP", 2},
                                                    {"_HYBRID_SHARD_ZERO2", 2},
                                                    {"NO_SHARD", 0}};
  plan["zero"] = 0;
  plan["recompute"] = "none";
  if (from.find("fsdp_config") == nullptr) return;
  const std::string strategy = from.text("fsdp_config.sharding_strategy");
  const auto found = stages.find(strategy.empty() ? "FULL_SHARD" : strategy);
  if (found == stages.end())
    from.violations.push_back({"", from.place("fsdp_config.sharding_strategy"), "is no sharding strategy",
                               "found " + strategy, "FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD"});
  else
    plan["zero"] = found->second;
  if (strategy.find("HYBRID") != std::string::npos)
    from.note("fsdp_config.sharding_strategy", "shards within a group: pass --zero-shard, its GPUs");
  const std::string mixed = from.text("fsdp_config.mixed_precision");  // composer/distributed/shared_utils.py
  if (mixed == "PURE") plan["grad_reduce"] = plan["precision"] == "fp16" ? "fp16" : "bf16";
  if (mixed == "FULL") plan["precision"] = "fp32";
  if (from.on("fsdp_config.activation_checkpointing")) plan["recompute"] = "full";
  if (from.on("fsdp_config.activation_cpu_offload"))
    from.note("fsdp_config.activation_cpu_offload", "is ignored: activations are counted on the GPU");
  for (const char* key :
       {"activation_checkpointing_reentrant", "limit_all_gathers", "state_dict_type", "use_orig_params",
        "sync_module_states", "verbose", "forward_prefetch", "backward_prefetch"})
    from.find(std::string("fsdp_config.") + key);
}

}  // namespace

bool is_llm_foundry(const Json& yaml) {
  return yaml.is_object() && yaml.contains("train_loader") && yaml.contains("model") &&
         yaml["model"].is_object();
}

Imported import_llm_foundry(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request);
  static const std::map<std::string, std::string> types = {
      {"amp_bf16", "bf16"}, {"amp_fp16", "fp16"}, {"amp_fp8", "fp8"}, {"fp32", "fp32"}, {"", "bf16"}};
  Json plan = {{"framework", "fsdp1"}};  // composer/distributed/dist_strategy.py
  const std::string precision = from.text("precision");
  const auto type = types.find(precision);
  if (type == types.end())
    from.violations.push_back({file, from.place("precision"), "must be amp_bf16, amp_fp16, amp_fp8 or fp32",
                               "found " + precision, "amp_bf16"});
  plan["precision"] = type == types.end() ? "bf16" : type->second;
  add_sharding(from, plan);
  for (Violation& each : from.violations) each.file = file;
  if (from.text("device_train_microbatch_size") == "auto")
    from.note("device_train_microbatch_size", "is chosen at run time: pass --mbs");
  else if (const std::int64_t micro = from.integer("device_train_microbatch_size", 0); micro > 0)
    plan["micro_batch"] = micro;
  if (const std::int64_t all = from.integer("global_train_batch_size", 0); all > 0)
    plan["global_batch"] = all;
  if (const std::int64_t seq = from.integer("max_seq_len", 0); seq > 0) plan["seq"] = seq;
  plan["clip_grad"] = from.number("algorithms.gradient_clipping.clipping_threshold", 0);
  from.find("algorithms.gradient_clipping.clipping_type");
  const std::string optimizer = from.text("optimizer.name");
  const std::string differs = optimizer.find("adam") != std::string::npos || optimizer.empty()
                                  ? ""
                                  : optimizer_note(from.place("optimizer.name"), optimizer);
  if (!differs.empty()) from.imported.notes.push_back(differs);
  const std::string model = from.text("model.name");
  if (model == "mpt_causal_lm") {
    from.imported.model = model_of_mpt(from);
  } else {
    from.find("model");
    from.note("model.name", fmt::format("{} {} is not looked up: pass --model NAME|config.json", model,
                                        from.text("model.pretrained_model_name_or_path")));
    from.ignore_unless("model.config_overrides", Json::object(), "the model that --model names is counted");
  }
  from.write_gpus(0);
  from.imported.scenario["plan"] = plan;
  return from.finish({"autoresume",
                      "callbacks",
                      "console_log_interval",
                      "device_eval_batch_size",
                      "dist_timeout",
                      "eval_first",
                      "eval_interval",
                      "eval_loader",
                      "eval_subset_num_batches",
                      "icl_tasks",
                      "loggers",
                      "log_to_console",
                      "max_duration",
                      "optimizer",
                      "progress_bar",
                      "run_name",
                      "save_folder",
                      "save_interval",
                      "save_num_checkpoints_to_keep",
                      "save_overwrite",
                      "load_path",
                      "load_weights_only",
                      "scheduler",
                      "seed",
                      "tokenizer",
                      "train_loader",
                      "variables",
                      "python_log_level",
                      "data_local",
                      "data_remote",
                      "global_seed",
                      "tokenizer_name",
                      "init_config",
                      "experiment"});
}

}  // namespace rehearse
