#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "frameworks/layer_pattern.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/trainer_yaml.h"

namespace rehearse {

namespace {

// nanotron/config/parallelism_config.py, with the counted values.
constexpr std::array kIgnoredOfNanotron = {
    CountedKey{"parallelism.tp_recompute_allgather", "true", "gathered inputs are counted as gathered again"},
    CountedKey{"parallelism.moe_layer_recompute", "false", "experts are counted as not recomputed",
               "less memory, more time"},
    CountedKey{"parallelism.sequence_parallel_degree", "1", "no further degree is counted"}};

// Keys of the model that leave its layers and kernels as they are counted.
constexpr std::array kFreeOfModel = {"_attn_implementation",
                                     "_fused_rms_norm",
                                     "_fused_rotary_emb",
                                     "_use_qkv_packed",
                                     "use_cache",
                                     "pretraining_tp",
                                     "rope_interleaved",
                                     "bos_token_id",
                                     "eos_token_id",
                                     "pad_token_id",
                                     "initializer_range",
                                     "z_loss_coefficient",
                                     "z_loss_enabled",
                                     "rms_norm_eps",
                                     "rope_theta",
                                     "rope_seq_len_interpolation_factor",
                                     "flex_attention_mask",
                                     "log_attn_probs",
                                     "attention_softmax_in_fp32",
                                     "scale_attention_softmax_in_fp32",
                                     "use_position_embeddings",
                                     "ring_attn_heads_k_stride"};

bool is_free_of_model(const std::string& key) {
  return key.starts_with("is_") || std::ranges::find(kFreeOfModel, key) != kFreeOfModel.end();
}

// Starcoder2Config: GELU with biases, LayerNorm, and its own names of the heads of keys.
void name_as_starcoder2(PlanYaml& yaml, const Json& config, Json& model) {
  model["model_type"] = "starcoder2";
  if (yaml.on("model.model_config.grouped_query") && config.contains("num_kv_heads"))
    model["num_key_value_heads"] = config["num_kv_heads"];
  else  // multi_query, also where neither is set
    model["num_key_value_heads"] = 1;
  const Json hidden = config.value("hidden_size", Json());
  if (!model.contains("intermediate_size") && hidden.is_number_integer() && hidden < (1 << 28))
    model["intermediate_size"] = hidden.get<std::int64_t>() * 4;
  for (const auto& [own, usual] : {std::pair{"layer_norm_epsilon", "norm_epsilon"},
                                   {"resid_pdrop", "residual_dropout"},
                                   {"attn_pdrop", "attention_dropout"},
                                   {"embd_pdrop", "embedding_dropout"}})
    if (model.contains(own)) model[usual] = model[own];
  for (const char* own : {"grouped_query", "multi_query", "num_kv_heads", "layer_norm_epsilon", "resid_pdrop",
                          "attn_pdrop", "embd_pdrop", "activation_function", "scale_attn_weights"})
    model.erase(own);
}

void rename(Json& model, const char* own, const char* usual) {
  if (!model.contains(own)) return;
  model[usual] = model[own];
  model.erase(own);
}

// Every no_rope_layer-th layer has neither rotary embedding nor window (nanotron/models/qwen.py). SmolLM3's
// configuration has keys for both.
void name_windows(PlanYaml& yaml, const Json& config, Json& model) {
  model["model_type"] = "smollm3";
  model["use_sliding_window"] = model.contains("sliding_window");
  model.erase("no_rope_layer");
  const Json count = config.value("num_hidden_layers", Json());
  const std::int64_t every = yaml.integer("model.model_config.no_rope_layer", 0, "", 1);
  const bool is_known = count.is_number_integer() && count > 0 && count <= kMaxLayersOfFile;
  const std::int64_t layers = is_known ? count.get<std::int64_t>() : 0;
  const std::int64_t step = every > 0 ? every : layers + 1;
  for (std::int64_t layer = 1; layer <= layers; ++layer) {
    const bool is_plain = layer % step == 0;
    model["no_rope_layers"].push_back(is_plain ? 0 : 1);
    model["layer_types"].push_back(is_plain || !model["use_sliding_window"] ? "full_attention"
                                                                            : "sliding_attention");
  }
}

// MoEConfig, whose experts are in all layers unless "layers" lists some.
void name_experts(PlanYaml& yaml, Json& model) {
  const std::string at = "model.model_config.moe_config.";
  const bool has_shared = yaml.on(at + "enable_shared_expert");
  model["model_type"] = has_shared ? "qwen2_moe" : "mixtral";
  model.erase("moe_config");
  model[has_shared ? "num_experts" : "num_local_experts"] = yaml.integer(at + "num_experts", 8);
  model["num_experts_per_tok"] = yaml.integer(at + "top_k", 2);
  model[has_shared ? "moe_intermediate_size" : "intermediate_size"] =
      yaml.integer(at + "moe_intermediate_size", 1408);
  if (has_shared)
    model["shared_expert_intermediate_size"] = yaml.integer(at + "shared_expert_intermediate_size", 5632);
  yaml.find(at + "router_aux_loss_coef");
  yaml.ignore_unless(at + "token_dispatcher_type", "alltoall", "tokens are counted as an all-to-all");
  if (const Json* layers = yaml.find(at + "layers"); layers != nullptr && *layers != Json::array({-1}))
    yaml.note(at + "layers", "is ignored: experts are counted in every layer");
  if (yaml.on("model.model_config.attention_bias") && !has_shared)
    yaml.note("model.model_config.attention_bias", "is ignored beside experts: no bias is counted");
}

// Qwen2Config: biases of queries, keys and values alone.
void name_as_qwen2(PlanYaml& yaml, const Json& config, Json& model) {
  const bool has_bias = yaml.on("model.model_config.attention_bias");
  if (model.contains("moe_config"))
    name_experts(yaml, model);
  else if (has_bias)
    model["model_type"] = "qwen2";
  const bool has_windows = model.contains("sliding_window") || model.contains("no_rope_layer");
  if (has_windows && (has_bias || model.contains("num_experts_per_tok")))
    yaml.note(
        "model.model_config." +
            std::string(config.contains("sliding_window_size") ? "sliding_window_size" : "no_rope_layer"),
        "is ignored beside attention_bias or experts: attention is counted over the whole sequence");
  else if (has_windows)
    return name_windows(yaml, config, model);
  for (const char* key : {"sliding_window", "no_rope_layer"}) model.erase(key);
}

// nanotron's names of the parts of its Llama (nanotron/config/models_config.py).
// Its vocabulary is padded, so that each tensor-parallel rank has the same part.
Json model_of_nanotron(PlanYaml& yaml, std::int64_t tp) {
  const Json* config = yaml.find("model.model_config");
  if (config == nullptr || !config->is_object()) return nullptr;
  const Json model = *config;
  if (yaml.on("model.model_config.is_mamba_config") && !yaml.is_over("/model")) {
    const Json width = model.value("d_model", Json());
    yaml.violations.push_back({yaml.file(), yaml.place("model.model_config.is_mamba_config"),
                               "nanotron's own Mamba is not read",
                               width.is_null() ? "" : "d_model = " + width.dump(),
                               "--model config.json with \"model_type\": \"mamba\" and the same sizes"});
    return nullptr;
  }
  yaml.imported.model_path = "model.model_config";
  const std::int64_t unit =
      std::min<std::int64_t>(yaml.integer("model.make_vocab_size_divisible_by", 1), 1 << 20) *
      std::min<std::int64_t>(tp, 1 << 20);
  Json named = Json::object();
  for (const auto& [key, value] : model.items()) {
    if (is_free_of_model(key)) continue;
    const std::string path = "model.model_config." + key;
    if (key == "_use_doc_masking")
      yaml.ignore_unless(path, false, "attention spans the whole sequence");
    else if (!key.starts_with('_') && yaml.find(path))
      named[key] = value;
  }
  if (model.contains("model_type")) return model;
  rename(named, "sliding_window_size", "sliding_window");
  named["model_type"] = named.contains("num_local_experts") ? "mixtral" : "llama";
  if (yaml.on("model.model_config.is_starcoder2_config"))
    name_as_starcoder2(yaml, model, named);
  else
    name_as_qwen2(yaml, model, named);
  if (named.contains("vocab_size") && named["vocab_size"].is_number_integer() && unit > 1 &&
      named["vocab_size"] > 0 && named["vocab_size"] < (1 << 30))
    named["vocab_size"] = (named["vocab_size"].get<std::int64_t>() + unit - 1) / unit * unit;
  return named;
}

}  // namespace

bool is_nanotron(const Json& yaml) {
  return yaml.is_object() && yaml.contains("parallelism") && yaml.contains("tokens") &&
         yaml["parallelism"].is_object() && yaml["tokens"].is_object();
}

Imported import_nanotron(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request, Typing::strict);
  Json plan = {{"framework", "nanotron"}};
  const auto degree = [&](const char* key, const char* pointer = "") {
    return from.integer(std::string("parallelism.") + key, 1, pointer, 1);
  };
  const std::int64_t dp = degree("dp"), tp = degree("tp", "/plan/tp"), pp = degree("pp", "/plan/pp");
  const std::int64_t cp = degree("context_parallel_size");
  plan["tp"] = tp;
  plan["pp"] = pp;
  if (cp > 1) plan["cp"] = cp;
  if (const std::int64_t ep = degree("expert_parallel_size"); ep > 1) plan["ep"] = ep;
  from.write_gpus(dp * tp * pp * cp);
  const std::string schedule =
      from.choice("parallelism.pp_engine", {{"afab", "gpipe"}, {"1f1b", "1f1b"}}, "gpipe");
  if (pp > 1) plan["schedule"] = schedule;
  const std::string mode = from.choice(
      "parallelism.tp_mode",
      {{"ALL_REDUCE", ""}, {"REDUCE_SCATTER", "sp"}, {"all_reduce", ""}, {"reduce_scatter", "sp"}}, "");
  plan["sequence_parallel"] = mode == "sp" && tp > 1;
  if (from.on("parallelism.tp_linear_async_communication") && tp > 1)
    from.note("parallelism.tp_linear_async_communication",
              "is ignored: no overlap of tensor-parallel messages is counted");
  plan["recompute"] = from.on("parallelism.recompute_layer") ? "full" : "none";
  if (!from.on("optimizer.accumulate_grad_in_fp32", true))
    from.note("optimizer.accumulate_grad_in_fp32", "is approximated: gradients are counted in fp32");
  plan["zero"] = from.integer("optimizer.zero_stage", 0);
  if (const double norm = from.number("optimizer.clip_grad", -1); norm >= 0) plan["clip_grad"] = norm;
  plan["precision"] = from.choice(
      "model.dtype", {{"float16", "fp16"}, {"float32", "fp32"}, {"bfloat16", "bf16"}, {"double", "fp32"}},
      "bf16");
  if (const double bucket = from.number("model.ddp_bucket_cap_mb", 25); bucket > 0 && bucket < 1e6)
    plan["bucket"] = fmt::format("{:.0f}B", bucket * 1024 * 1024);
  for (const char* key :  // the second, in releases of 2023
       {"optimizer.optimizer_factory.torch_adam_is_fused", "optimizer.torch_adam_is_fused"})
    if (from.find(key)) plan["fused_adam"] = from.on(key);
  const std::string optimizer = from.text("optimizer.optimizer_factory.name");
  if (!optimizer.empty()) note_optimizer("optimizer.optimizer_factory.name", optimizer, from.imported);
  const std::int64_t micro = from.integer("tokens.micro_batch_size", 1, "/plan/micro_batch", 1);
  plan["micro_batch"] = micro;
  plan["global_batch"] = micro * from.integer("tokens.batch_accumulation_per_replica", 1, "", 1) * dp;
  if (const std::int64_t seq = from.integer("tokens.sequence_length", 0, "/plan/seq", 1); seq > 0)
    plan["seq"] = seq;
  from.imported.model = model_of_nanotron(from, tp);
  from.ignore_unless(kIgnoredOfNanotron);
  from.imported.scenario["plan"] = plan;
  std::set<std::string> free = {"checkpoints",
                                "data_stages",
                                "general",
                                "data",
                                "learning_rate_scheduler",
                                "lighteval",
                                "logging",
                                "metrics_logging",
                                "model.init_method",
                                "optimizer.adam_beta1",
                                "optimizer.adam_beta2",
                                "optimizer.adam_eps",
                                "optimizer.learning_rate",
                                "optimizer.learning_rate_scheduler",
                                "optimizer.optimizer_factory.adam_beta1",
                                "optimizer.optimizer_factory.adam_beta2",
                                "optimizer.optimizer_factory.adam_eps",
                                "optimizer.weight_decay",
                                "optimizer.weight_decay_exclude_named_params",
                                "parallelism.enable_monitoring",
                                "profiler",
                                "s3_upload",
                                "tokenizer",
                                "tokens.limit_test_batches",
                                "tokens.limit_val_batches",
                                "tokens.train_steps",
                                "tokens.val_check_interval"};
  if (const Json* config = from.find("model.model_config"); config != nullptr && config->is_object())
    for (const auto& [key, value] : config->items())
      if (is_free_of_model(key)) free.insert("model.model_config." + key);
  return from.finish(free);
}

}  // namespace rehearse
