#include "frameworks/trainer_yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "frameworks/optimizer_note.h"
#include "frameworks/plan_yaml.h"

namespace rehearse {

namespace {

// nanotron's own names of what its Llama is (nanotron/config/models_config.py).
Json model_of_nanotron(PlanYaml& yaml) {
  const Json* config = yaml.find("model.model_config");
  if (config == nullptr || !config->is_object()) return nullptr;
  Json model = *config;
  if (model.contains("model_type")) return model;
  model["model_type"] = "llama";
  if (model.contains("num_local_experts") || model.contains("moe_config")) model["model_type"] = "mixtral";
  Json named = Json::object();
  for (const auto& [key, value] : model.items())
    if (!value.is_null() && !key.starts_with("is_") && !key.starts_with("_") && key != "use_cache" &&
        key != "pretraining_tp" && key != "rope_interleaved")
      named[key] = value;
  return named;
}

}  // namespace

bool is_nanotron(const Json& yaml) {
  return yaml.is_object() && yaml.contains("parallelism") && yaml.contains("tokens") &&
         yaml["parallelism"].is_object() && yaml["tokens"].is_object();
}

Imported import_nanotron(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request);
  Json plan = {{"framework", "nanotron"}};
  const auto degree = [&](const char* key, const char* pointer = "") {
    return std::max<std::int64_t>(1, from.integer(std::string("parallelism.") + key, 1, pointer));
  };
  const std::int64_t dp = degree("dp"), tp = degree("tp", "/plan/tp"), pp = degree("pp", "/plan/pp");
  const std::int64_t cp = degree("context_parallel_size");
  plan["tp"] = tp;
  plan["pp"] = pp;
  if (cp > 1) plan["cp"] = cp;
  if (const std::int64_t ep = degree("expert_parallel_size"); ep > 1) plan["ep"] = ep;
  from.write_gpus(dp * tp * pp * cp);
  const std::string engine = from.text("parallelism.pp_engine");
  if (pp > 1) plan["schedule"] = engine == "afab" ? "gpipe" : "1f1b";
  plan["sequence_parallel"] = from.text("parallelism.tp_mode") == "REDUCE_SCATTER" && tp > 1;
  if (from.on("parallelism.tp_linear_async_communication") && tp > 1)
    from.note("parallelism.tp_linear_async_communication",
              "is ignored: no overlap of tensor-parallel messages is counted");
  plan["recompute"] = from.on("parallelism.recompute_layer") ? "full" : "none";
  plan["zero"] = from.integer("optimizer.zero_stage", 0);
  if (!from.on("optimizer.accumulate_grad_in_fp32", true))
    from.note("optimizer.accumulate_grad_in_fp32", "is approximated: gradients are counted in fp32");
  from.find("optimizer.clip_grad");
  const std::string dtype = from.text("model.dtype");
  plan["precision"] = dtype == "float16" ? "fp16" : dtype == "float32" ? "fp32" : "bf16";
  from.find("model.ddp_bucket_cap_mb");
  const std::string differs =
      optimizer_note("optimizer.optimizer_factory.name", from.text("optimizer.optimizer_factory.name"));
  if (!differs.empty() && from.find("optimizer.optimizer_factory.name"))
    from.imported.notes.push_back(differs);
  const std::int64_t micro = from.integer("tokens.micro_batch_size", 1, "/plan/micro_batch");
  plan["micro_batch"] = micro;
  plan["global_batch"] = micro * from.integer("tokens.batch_accumulation_per_replica", 1) * dp;
  if (const std::int64_t seq = from.integer("tokens.sequence_length", 0, "/plan/seq"); seq > 0)
    plan["seq"] = seq;
  from.imported.model = model_of_nanotron(from);
  from.imported.scenario["plan"] = plan;
  return from.finish({"checkpoints", "data_stages", "general", "lighteval", "logging", "profiler",
                      "tokenizer", "s3_upload", "metrics_logging", "model.init_method",
                      "model.make_vocab_size_divisible_by", "optimizer.learning_rate_scheduler",
                      "optimizer.optimizer_factory", "optimizer.weight_decay",
                      "optimizer.weight_decay_exclude_named_params", "tokens.limit_test_batches",
                      "tokens.limit_val_batches", "tokens.train_steps", "tokens.val_check_interval"});
}

bool is_trainer(const Json& yaml) {
  if (!yaml.is_object()) return false;
  const bool names_model = yaml.contains("model_name_or_path") || yaml.contains("base_model");
  return names_model && (yaml.contains("per_device_train_batch_size") || yaml.contains("micro_batch_size") ||
                         yaml.contains("gradient_accumulation_steps") || yaml.contains("learning_rate"));
}

// transformers/training_args.py, LLaMA-Factory's hparams and axolotl's configuration reference.
Imported import_trainer(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request);
  const bool is_axolotl = yaml.json.contains("base_model");
  const bool is_factory = yaml.json.contains("finetuning_type") || yaml.json.contains("template");
  std::string settings = from.text("deepspeed");
  if (settings == "false") settings.clear();
  Json plan = {{"framework", "fsdp"}, {"zero", 0}};
  for (const char* key : {"fsdp", "fsdp_config"}) {
    const Json* sharding = from.find(key);
    if (sharding != nullptr && !sharding->empty() && *sharding != "" && *sharding != false) plan["zero"] = 3;
  }
  std::int64_t version = from.integer("fsdp_version", 1);
  for (const char* key : {"fsdp_config.version", "fsdp_config.fsdp_version"})
    version = std::max(version, from.integer(key, 1));
  const bool is_split =
      from.integer("tensor_parallel_size", 1) > 1 || from.integer("context_parallel_size", 1) > 1;
  if (plan["zero"] == 3 && version < 2 && !is_split) plan["framework"] = "fsdp1";
  for (const char* prefix : {"fsdp_config.", "fsdp_config.fsdp_"}) {  // of transformers, and of axolotl
    const std::string before = prefix;
    if (!from.on(before + "reshard_after_forward", true)) plan["zero"] = 2;
    if (from.on(before + "offload_params"))
      from.note(before + "offload_params", "is ignored: parameters are counted on the GPU, without copies");
  }
  const bool by_fsdp =
      from.on("fsdp_config.activation_checkpointing") || from.on("fsdp_config.fsdp_activation_checkpointing");
  if (!settings.empty()) {
    const auto given = request.shell.files.find(settings.substr(settings.find_last_of('/') + 1));
    if (given == request.shell.files.end())
      throw InputError({file, from.place("deepspeed"), "names a file of its own, which holds the sharding",
                        settings, fmt::format("rehearse import {} --source {}", file, settings)});
    Imported sharding = import_deepspeed(JsonReader::of_text(given->second, settings), 0);
    plan = sharding.scenario["plan"];
    for (std::string& note : sharding.notes) from.imported.notes.push_back(std::move(note));
  }
  const char* const batch = is_axolotl ? "micro_batch_size" : "per_device_train_batch_size";
  plan["micro_batch"] =
      std::max<std::int64_t>(1, from.integer(batch, is_axolotl ? 1 : 8, "/plan/micro_batch"));
  if (is_factory && !from.find("finetuning_type"))
    from.imported.notes.emplace_back(
        "finetuning_type is not given: LLaMA-Factory's default is lora, but all parameters are counted as "
        "trained");
  from.imported.accumulation = std::max<std::int64_t>(1, from.integer("gradient_accumulation_steps", 1));
  for (const char* key : {"cutoff_len", "sequence_len", "max_seq_length", "max_length"})
    if (const std::int64_t seq = from.integer(key, 0, "/plan/seq"); seq > 0) plan["seq"] = seq;
  const std::string wide = from.text("bf16"), half = from.text("fp16");
  plan["precision"] = wide == "true" || wide == "auto" ? "bf16" : half == "true" ? "fp16" : "fp32";
  // axolotl's "offload" and "unsloth" are ways to do it.
  const std::string checkpointing = from.text("gradient_checkpointing");
  const bool again = (checkpointing.empty() ? is_factory : checkpointing != "false") &&
                     !from.on("disable_gradient_checkpointing");
  if (!checkpointing.empty() && checkpointing != "false" && checkpointing != "true")
    from.note("gradient_checkpointing", checkpointing + " is approximated: inputs of layers stay on the GPU");
  plan["recompute"] = again || by_fsdp ? "full" : "none";
  for (const char* key : {"tensor_parallel_size", "context_parallel_size"})
    if (const std::int64_t degree = from.integer(key, 1); degree > 1)
      plan[std::string(key) == "tensor_parallel_size" ? "tp" : "cp"] = degree;
  for (const char* key : {"optim", "optimizer"}) {
    const std::string name = from.text(key);
    const std::string differs = name.empty() || name.starts_with("adamw") ? "" : optimizer_note(key, name);
    if (!differs.empty()) from.imported.notes.push_back(differs);
  }
  for (const char* key : {"finetuning_type", "adapter"})
    if (const std::string method = from.text(key); !method.empty() && method != "full")
      from.note(key, method + " is ignored: all parameters are counted as trained");
  for (const char* key : {"packing", "sample_packing", "neat_packing"})
    if (from.on(key)) from.note(key, "is approximated: every sequence has its full length");
  for (const char* key : {"model_name_or_path", "base_model"})
    if (from.find(key)) from.note(key, "is not looked up: pass --model NAME|config.json");
  from.write_gpus(0);
  from.imported.scenario["plan"] = plan;
  return from.finish({"adam_beta1",
                      "adam_beta2",
                      "adam_epsilon",
                      "bf16_full_eval",
                      "chat_template",
                      "compute_accuracy",
                      "dataset",
                      "dataset_dir",
                      "dataset_prepared_path",
                      "dataloader_num_workers",
                      "datasets",
                      "ddp_timeout",
                      "do_train",
                      "early_stopping_patience",
                      "eval_steps",
                      "eval_strategy",
                      "evals_per_epoch",
                      "hub_model_id",
                      "learning_rate",
                      "load_best_model_at_end",
                      "logging_steps",
                      "lora_alpha",
                      "lora_dropout",
                      "lora_rank",
                      "lora_target",
                      "lora_r",
                      "lora_target_modules",
                      "lora_target_linear",
                      "lr_scheduler",
                      "lr_scheduler_type",
                      "max_grad_norm",
                      "max_samples",
                      "model_type",
                      "num_epochs",
                      "num_train_epochs",
                      "output_dir",
                      "overwrite_cache",
                      "overwrite_output_dir",
                      "per_device_eval_batch_size",
                      "plot_loss",
                      "preprocessing_num_workers",
                      "report_to",
                      "resume_from_checkpoint",
                      "save_only_model",
                      "save_steps",
                      "save_strategy",
                      "saves_per_epoch",
                      "seed",
                      "shuffle",
                      "special_tokens",
                      "stage",
                      "template",
                      "tf32",
                      "tokenizer_type",
                      "trust_remote_code",
                      "val_set_size",
                      "val_size",
                      "wandb_entity",
                      "wandb_log_model",
                      "wandb_name",
                      "wandb_project",
                      "wandb_watch",
                      "warmup_ratio",
                      "warmup_steps",
                      "weight_decay",
                      "gradient_checkpointing_kwargs",
                      "flash_attn",
                      "auto_wrap_policy",
                      "cpu_ram_efficient_loading",
                      "state_dict_type",
                      "sync_module_states",
                      "transformer_layer_cls_to_wrap",
                      "use_orig_params",
                      "version",
                      "fsdp_auto_wrap_policy",
                      "fsdp_cpu_ram_efficient_loading",
                      "fsdp_state_dict_type",
                      "fsdp_sync_module_states",
                      "fsdp_transformer_layer_cls_to_wrap",
                      "fsdp_use_orig_params",
                      "flash_attention",
                      "strict",
                      "train_on_inputs",
                      "group_by_length",
                      "pad_to_sequence_len",
                      "xformers_attention"});
}

std::string unread_program(const Json& yaml) {
  struct Sign {
    const char* key;
    const char* program;
  };
  static constexpr std::array kSigns = {Sign{"max_duration", "OLMo"},
                                        Sign{"recipe", "NeMo-Automodel or torchtune"},
                                        Sign{"_component_", "torchtune"}};
  if (!yaml.is_object()) return "";
  for (const Sign& sign : kSigns)
    if (yaml.contains(sign.key)) return sign.program;
  return "";
}

}  // namespace rehearse
