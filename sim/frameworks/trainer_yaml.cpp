#include "frameworks/trainer_yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "frameworks/fsdp_arguments.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/torch_defaults.h"

namespace rehearse {

namespace {

constexpr const char* kOneModel = "one pass of one model is counted";
constexpr const char* kAllTrained = "all parameters are counted as trained";
constexpr const char* kWideWeights = "weights are counted unquantized";
constexpr const char* kOwnKernels = "the kernels of the profile are counted";

// transformers/training_args.py, LLaMA-Factory's hparams and axolotl's configuration reference, with the
// values that are counted.
constexpr std::array kIgnoredOfTrainers = {
    CountedKey{"rl", "null", kOneModel},
    CountedKey{"beta", "null", kOneModel},  // TRL: of preferences and of reinforcement learning
    CountedKey{"reward_funcs", "null", kOneModel},
    CountedKey{"padding_free", "false", "every sequence has its full length"},
    CountedKey{"reward_model", "false", kOneModel},
    CountedKey{"qat", "null", "no fake quantization is counted"},
    CountedKey{"load_in_4bit", "false", kWideWeights},
    CountedKey{"load_in_8bit", "false", kWideWeights},
    CountedKey{"gptq", "false", kWideWeights},
    CountedKey{"quantization_bit", "null", kWideWeights},
    CountedKey{"use_unsloth", "false", kOwnKernels},
    CountedKey{"use_kernels", "false", kOwnKernels},
    CountedKey{"use_scattermoe", "false", kOwnKernels},
    CountedKey{"use_sonicmoe", "false", kOwnKernels},
    CountedKey{"lora_mlp_kernel", "false", kOwnKernels},
    CountedKey{"lora_qkv_kernel", "false", kOwnKernels},
    CountedKey{"lora_o_kernel", "false", kOwnKernels},
    CountedKey{"flash_attn_cross_entropy", "false", kOwnKernels},
    CountedKey{"flash_attn_rms_norm", "false", kOwnKernels},
    CountedKey{"flash_attn_fuse_mlp", "false", kOwnKernels},
    CountedKey{"cut_cross_entropy", "false", "the logits of all tokens are counted at once: more memory"},
    CountedKey{"torch_compile", "false", kUncompiled},
    CountedKey{"resize_token_embeddings_to_32x", "false", "the vocabulary of --model is counted"},
    CountedKey{"unfrozen_parameters", "null", kAllTrained},
    CountedKey{"freeze_trainable_layers", "null", kAllTrained},
    CountedKey{"freeze_trainable_modules", "null", kAllTrained},
    CountedKey{"freeze_language_model", "false", "the language model is counted as trained"},
    CountedKey{"train_mm_proj_only", "false", "the language model is counted as trained"},
    CountedKey{"use_galore", "false", "the state of Adam is counted"},
    CountedKey{"use_apollo", "false", "the state of Adam is counted"},
    CountedKey{"use_badam", "false", "the state of Adam is counted"},
    CountedKey{"use_adam_mini", "false", "the state of Adam is counted"},
    CountedKey{"use_muon", "false", "the state and step of Adam are counted"},
    CountedKey{"mixture_of_depths", "null", "every layer is counted for every token"},
    CountedKey{"neftune_noise_alpha", "null", "no noise on the embedding is counted"},
    CountedKey{"auto_find_batch_size", "false", "the microbatch of the file is counted"},
    CountedKey{"ddp_find_unused_parameters", "false", "no search for unused parameters is counted"},
    CountedKey{"activation_offloading", "false", "activations are counted on the GPU"},
    CountedKey{"tiled_mlp", "false", "the MLP is counted for the whole sequence at once"},
    CountedKey{"group_by_length", "false", "every sequence has its full length"},
    CountedKey{"relora", "false", kAllTrained},
    CountedKey{"fp8", "false", "GEMMs are counted in the precision of bf16 and fp16"}};

// Words of the key "fsdp": a list, or a text with blanks.
std::string words_of_fsdp(PlanYaml& from) {
  const Json* words = from.find("fsdp");
  if (words == nullptr || *words == false) return "";
  std::string all;
  for (const Json& each : words->is_array() ? *words : Json::array({*words}))
    all += (each.is_string() ? each.get<std::string>() : each.dump()) + " ";
  return in_upper_case(all);
}

// The strategy follows from transformers' words, and from FSDP's keys in the file's section, with or without
// their prefix.
void add_strategy(PlanYaml& from, Json& plan) {
  const std::string words = words_of_fsdp(from);
  const Json* section = from.find("fsdp_config");
  const bool shards = !words.empty() || (section != nullptr && section->is_object() && !section->empty());
  if (!shards) return;
  plan["zero"] = 3;
  std::string strategy = words;
  for (const char* key : {"fsdp_config.sharding_strategy", "fsdp_config.fsdp_sharding_strategy"})
    if (from.find(key)) strategy = in_upper_case(from.text(key));
  const auto has = [&](const char* part) { return strategy.find(part) != std::string::npos; };
  if (has("GRAD_OP") || has("ZERO2") || strategy == "2") plan["zero"] = 2;
  if (has("NO_SHARD") || strategy == "3") plan["zero"] = 0;
  if (has("HYBRID") || strategy == "4" || strategy == "5")
    from.imported.notes.emplace_back("fsdp shards within a node: pass --zero-shard, the GPUs of a node");
  if (words.find("OFFLOAD") != std::string::npos) {
    plan["offload"] = "optimizer";
    from.note("fsdp", std::string("offload ") + kOffloadsAll);
  }
}

void add_fsdp_of_trainer(PlanYaml& from, Json& plan) {
  add_strategy(from, plan);
  std::int64_t version = from.integer("fsdp_version", 1);
  for (const char* key : {"fsdp_config.version", "fsdp_config.fsdp_version"})
    version = std::max(version, from.integer(key, 1));
  const bool is_split = plan.contains("tp") || plan.contains("cp") || plan.contains("zero_shard");
  if (plan["zero"] != 0 && version < 2 && !is_split) plan["framework"] = "fsdp1";
  for (const std::string before : {"fsdp_config.", "fsdp_config.fsdp_"}) {  // of transformers, and of axolotl
    const Json* reshard = from.find(before + "reshard_after_forward");
    if (reshard != nullptr &&
        in_upper_case(reshard->is_string() ? reshard->get<std::string>() : reshard->dump()) == "FALSE")
      plan["zero"] = 2;
    if (from.on(before + "offload_params")) {
      plan["offload"] = "optimizer";
      from.note(before + "offload_params", kOffloadsAll);
    }
    if (in_upper_case(from.text(before + "backward_prefetch")) == "NO_PREFETCH") plan["prefetch"] = 0;
    from.ignore_unless(ignored_of_fsdp(), before);
  }
}

// Reads the separate ds_config.json, which holds the sharding.
void add_deepspeed(PlanYaml& from, const std::string& settings, const std::string& file,
                   const ImportRequest& request, Json& plan) {
  const auto given = request.shell.files.find(settings.substr(settings.find_last_of('/') + 1));
  if (given == request.shell.files.end())
    throw InputError({file, from.place("deepspeed"), "names a file of its own, which holds the sharding",
                      settings, fmt::format("rehearse import {} --source {}", file, settings)});
  Imported sharding = import_deepspeed(JsonReader::of_text(given->second, settings), request.gpus);
  plan = sharding.scenario["plan"];
  for (std::string& note : sharding.notes) from.imported.notes.push_back(std::move(note));
}

// Adds Liger's kernels; --enable_liger_kernel of transformers turns on all of them.
void add_kernels_of_trainer(PlanYaml& from, bool is_factory, Json& plan) {
  add_eager_transformers(from.imported, plan);
  const bool all = from.on("enable_liger_kernel") || from.on("use_liger_kernel");
  const std::pair<const char*, const char*> kernels[] = {{"liger_rms_norm", "fused_norm"},
                                                         {"liger_rope", "fused_rotary"},
                                                         {"liger_glu_activation", "fused_activation"},
                                                         {"liger_swiglu", "fused_activation"},
                                                         {"liger_cross_entropy", "fused_cross_entropy"}};
  for (const auto& [key, field] : kernels)
    if (from.on(key) || all) plan[field] = true;
  if (from.on("liger_fused_linear_cross_entropy") || all) {
    plan["fused_cross_entropy"] = true;
    from.imported.notes.emplace_back(
        "Liger's loss is approximated: the logits of all tokens are counted at once, which takes more "
        "memory");
  }
  from.ignore_unless("liger_layer_norm", false, "LayerNorms are counted as a kernel for each operation");
  std::string attention = from.text(is_factory ? "flash_attn" : "attn_implementation");
  if (from.on("eager_attention")) attention = "eager";
  if (attention == "disabled" || attention == "eager") plan["fused_attention"] = false;
}

void add_optimizer(PlanYaml& from, bool is_factory, Json& plan) {
  static const std::set<std::string> adam = {"adamw_torch",      "adamw_torch_fused", "adamw_hf",
                                             "adamw_apex_fused", "adamw_torch_xla",   "adamw"};
  for (const char* key : {"optim", "optimizer"}) {
    const std::string name = from.text(key);
    if (name.empty()) continue;
    plan["fused_adam"] = name.find("fused") != std::string::npos;
    const std::string differs = adam.contains(name) ? "" : optimizer_note(from.place(key), name);
    if (!differs.empty()) from.imported.notes.push_back(differs);
  }
  // transformers' default of 1 holds for both programs, and for DeepSpeed's "auto".
  if (!plan.contains("clip_grad") || from.find("max_grad_norm"))
    plan["clip_grad"] = from.number("max_grad_norm", 1);
  if (const std::string stage = from.text("stage");
      is_factory && !stage.empty() && stage != "sft" && stage != "pt")
    from.note("stage", stage + " is ignored: " + kOneModel);
  for (const char* key : {"finetuning_type", "adapter"})
    if (const std::string method = from.text(key); !method.empty() && method != "full")
      from.note(key, method + " is ignored: " + kAllTrained);
  if (is_factory && !from.find("finetuning_type"))
    from.imported.notes.emplace_back(
        "finetuning_type is not given: LLaMA-Factory's default is lora, but all parameters are counted as "
        "trained");
}

// The type in which TRL loads weights (trl/trainer/model_config.py, dtype): float32 by default.
std::string type_of_weights(PlanYaml& from) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    std::string type = from.text(key);
    if (type.starts_with("torch.")) type.erase(0, 6);
    if (type == "auto") from.note(key, "auto is approximated: weights are counted as loaded in bf16");
    if (!type.empty()) return type == "auto" ? "bfloat16" : type;
  }
  return "";
}

// LLaMA-Factory's defaults (src/llamafactory/hparams/finetuning_args.py). axolotl's switch is for all that is
// no language model (src/axolotl/utils/freeze.py, freeze_mm_modules).
void add_frozen(PlanYaml& from, bool is_factory, Json& plan) {
  const bool all = from.on("freeze_mm_modules");
  if (from.on("freeze_vision_tower", is_factory) || all) plan["freeze_tower"] = true;
  if (from.on("freeze_multi_modal_projector", is_factory) || all) plan["freeze_projector"] = true;
}

// bf16 by default: trl/trainer/base_config.py, and axolotl's schema, whose "auto" takes it on GPUs that have
// it. LLaMA-Factory keeps transformers' fp32.
std::string default_of_bf16(PlanYaml& from, bool is_axolotl, bool is_factory, const std::string& half) {
  const bool is_said = from.find("bf16") || half == "true" || from.on("bfloat16") || from.on("float16");
  if (is_said || is_factory) return from.text("bf16");
  if (!from.is_over("/plan/precision"))
    from.imported.notes.push_back(fmt::format("bf16 is not given: the default of {}, bf16, is counted",
                                              is_axolotl ? "axolotl" : "TRL"));
  return is_axolotl ? "auto" : "true";
}

void add_precision_of_trainer(PlanYaml& from, bool is_axolotl, bool is_factory, Json& plan) {
  const std::string half = from.text("fp16"), loaded = type_of_weights(from);
  const std::string wide = default_of_bf16(from, is_axolotl, is_factory, half);
  const bool mixed = wide == "true" || half == "true";
  const bool pure = from.on("pure_bf16") || from.on("bfloat16") || from.on("float16") ||
                    (loaded == "bfloat16" && (!mixed || (plan["zero"] == 0 && !from.is_over("/plan/zero"))));
  const std::string said = wide == "true" || wide == "auto" || from.on("pure_bf16") || from.on("bfloat16") ||
                                   (loaded == "bfloat16" && !mixed)
                               ? "bf16"
                           : half == "true" || from.on("float16") ? "fp16"
                                                                  : "fp32";
  if (plan["framework"] != "deepspeed" || wide == "true" || half == "true" || !plan.contains("precision"))
    plan["precision"] = said;
  if (plan["precision"] == "fp32" && from.on("tf32"))
    from.note("tf32", "is approximated: GEMMs are counted in fp32, without TF32");
  from.find("tf32");
  if (plan["framework"] == "deepspeed") return;
  // axolotl loads weights in the precision of its GEMMs; accelerate widens them only where it shards.
  if (plan["precision"] == "bf16" && (pure || (is_axolotl && plan["zero"] == 0))) {
    plan["recipe"] = "bf16";
    plan["grad_reduce"] = "bf16";
  }
  add_autocast(plan);
}

// LLaMA-Factory and TRL (trl/trainer/base_config.py) recompute by default.
void add_recompute(PlanYaml& from, bool is_axolotl, bool is_factory, Json& plan) {
  const bool by_fsdp =
      from.on("fsdp_config.activation_checkpointing") || from.on("fsdp_config.fsdp_activation_checkpointing");
  // axolotl's "offload" and "unsloth" are ways to do it.
  const std::string checkpointing = from.text("gradient_checkpointing");
  const bool off = from.on("disable_gradient_checkpointing");
  const bool again = (checkpointing.empty() ? !is_axolotl : checkpointing != "false") && !off;
  if (checkpointing.empty() && again && !is_factory && !from.is_over("/plan/recompute"))
    from.imported.notes.emplace_back(
        "gradient_checkpointing is not given: the default of TRL, true, is counted");
  if (!checkpointing.empty() && checkpointing != "false" && checkpointing != "true")
    from.note("gradient_checkpointing", checkpointing + " is approximated: inputs of layers stay on the GPU");
  plan["recompute"] = again || by_fsdp ? "full" : "none";
  const bool reentrant =
      from.on("gradient_checkpointing_kwargs.use_reentrant", true) && from.on("use_reentrant_gc", true);
  if (again || by_fsdp) plan["recompute_early_stop"] = by_fsdp || !reentrant;
}

// sequence_len of axolotl (utils/schemas/config.py), cutoff_len of LLaMA-Factory (hparams/data_args.py) and
// max_length of TRL (trainer/sft_config.py, dpo_config.py).
std::int64_t default_length(bool is_axolotl, bool is_factory) {
  return is_axolotl ? 512 : is_factory ? 2048 : 1024;
}

void add_batch_of_trainer(PlanYaml& from, bool is_axolotl, bool is_factory, Json& plan) {
  const char* const batch = is_axolotl ? "micro_batch_size" : "per_device_train_batch_size";
  plan["micro_batch"] =
      std::max<std::int64_t>(1, from.integer(batch, is_axolotl ? 1 : 8, "/plan/micro_batch"));
  from.imported.accumulation = std::max<std::int64_t>(1, from.integer("gradient_accumulation_steps", 1));
  for (const char* key : {"cutoff_len", "sequence_len", "max_seq_length", "max_length"})
    if (const std::int64_t seq = from.integer(key, 0, "/plan/seq"); seq > 0) plan["seq"] = seq;
  if (!plan.contains("seq") && !from.is_over("/plan/seq")) {
    plan["seq"] = default_length(is_axolotl, is_factory);
    from.imported.notes.push_back(
        fmt::format("the length of sequences is not given: {} is counted, the program's default",
                    plan["seq"].get<std::int64_t>()));
  }
  bool full = from.on("pad_to_sequence_len");
  for (const char* key : {"packing", "sample_packing", "neat_packing"}) {
    full = full || from.on(key);
    if (from.on(key)) from.note(key, "is approximated: attention spans the whole sequence, not each sample");
  }
  if (!full)
    from.imported.notes.emplace_back(
        "sequences are counted at their full length: without packing they are padded to the longest of a "
        "batch "
        "alone");
}

void add_degrees(PlanYaml& from, Json& plan) {
  const std::pair<const char*, const char*> degrees[] = {{"tensor_parallel_size", "tp"},
                                                         {"context_parallel_size", "cp"},
                                                         {"sequence_parallel_degree", "cp"},
                                                         {"expert_parallel_size", "ep"}};
  for (const auto& [key, field] : degrees)
    if (const std::int64_t degree = from.integer(key, 1); degree > 1) plan[field] = degree;
  const std::int64_t copies = from.integer("dp_replicate_size", 1);
  // accelerate's mesh dp_shard_cp
  const std::int64_t shard = std::min<std::int64_t>(from.integer("dp_shard_size", 1), 1 << 20) *
                             std::min<std::int64_t>(from.integer("context_parallel_size", 1), 1 << 20);
  if (copies > 1 && shard > 1) plan["zero_shard"] = shard;
}

const std::set<std::string>& free_of_trainers() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> all = keys_of(
        "adam_beta1 adam_beta2 adam_eps adam_epsilon bf16_full_eval chat_template compute_accuracy "
        "dataloader_num_workers dataloader_pin_memory dataset dataset_dir dataset_prepared_path datasets "
        "ddp_timeout debug default_system do_eval do_predict do_train early_stopping_patience eot_tokens "
        "eval_batch_size eval_dataset eval_sample_packing eval_steps eval_strategy eval_table_size "
        "evals_per_epoch evaluation_strategy export_dir flash_attention fsdp_final_state_dict_type "
        "hf_use_auth_token hub_model_id hub_strategy include_num_input_tokens_seen learning_rate "
        "load_best_model_at_end logging_dir logging_steps logging_strategy lora_alpha lora_dropout "
        "lora_fan_in_fan_out lora_model_dir lora_modules_to_save lora_r lora_rank lora_target "
        "lora_target_linear lora_target_modules loss_watchdog_patience loss_watchdog_threshold "
        "lr_scheduler lr_scheduler_kwargs lr_scheduler_type max_new_tokens max_samples max_steps "
        "metric_for_best_model min_sample_len model_type num_epochs num_train_epochs output_dir "
        "overwrite_cache overwrite_output_dir per_device_eval_batch_size plot_loss predict_with_generate "
        "preprocessing_num_workers processor_type push_dataset_to_hub push_to_hub remove_unused_columns "
        "report_to resume_from_checkpoint run_name save_only_model save_safetensors save_steps "
        "save_strategy save_total_limit saves_per_epoch seed shuffle shuffle_merged_datasets "
        "skip_prepare_dataset special_tokens strict template tokenized_path tokenizer_legacy "
        "tokenizer_type tokenizer_use_fast tokens torchdistx_path train_on_inputs trust_remote_code "
        "model_revision dataset_name dataset_config dataset_num_proc log_level eos_token "
        "use_tensorboard val_set_size val_size wandb_entity wandb_log_model wandb_name wandb_project "
        "wandb_run_id wandb_watch warmup_ratio warmup_steps weight_decay xformers_attention");
    for (const char* before : {"fsdp_config.", "fsdp_config.fsdp_"}) all.merge(free_of_fsdp(before));
    return all;
  }();
  return keys;
}

}  // namespace

bool is_trainer(const Json& yaml) {
  if (!yaml.is_object()) return false;
  const bool names_model = yaml.contains("model_name_or_path") || yaml.contains("base_model");
  return names_model && (yaml.contains("per_device_train_batch_size") || yaml.contains("micro_batch_size") ||
                         yaml.contains("gradient_accumulation_steps") || yaml.contains("learning_rate") ||
                         yaml.contains("finetuning_type"));
}

Imported import_trainer(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request);
  const bool is_axolotl = yaml.json.contains("base_model");
  const bool is_factory = yaml.json.contains("finetuning_type") || yaml.json.contains("template");
  for (const char* key : {"tensor_model_parallel_size", "pipeline_model_parallel_size"})
    if (yaml.json.contains(key))
      throw InputError(
          {file, from.place(key), "runs Megatron core by MCore Adapter, which is not read", "",
           "the same settings as flags: rehearse simulate --framework megatron-core --tp N --pp N ..."});
  Json plan = {{"framework", "fsdp"}, {"zero", 0}};
  std::string settings = from.text("deepspeed");
  if (settings == "false") settings.clear();
  if (settings.empty()) {
    add_degrees(from, plan);
    add_fsdp_of_trainer(from, plan);
  } else {
    add_deepspeed(from, settings, file, request, plan);
    add_degrees(from, plan);
  }
  add_batch_of_trainer(from, is_axolotl, is_factory, plan);
  add_precision_of_trainer(from, is_axolotl, is_factory, plan);
  add_recompute(from, is_axolotl, is_factory, plan);
  add_kernels_of_trainer(from, is_factory, plan);
  add_optimizer(from, is_factory, plan);
  add_frozen(from, is_factory, plan);
  from.ignore_unless(kIgnoredOfTrainers);
  if (!is_axolotl && settings.empty() && plan["zero"] == 0 && !from.is_over("/plan/zero"))
    from.imported.notes.emplace_back(
        "the file states no sharding, which a file of Accelerate may: every GPU is counted with the whole "
        "state; pass --zero and --precision as that file has them");
  for (const char* key : {"model_name_or_path", "base_model"})
    if (from.find(key) && !from.is_over("/model"))
      from.note(key, "is not looked up: pass --model NAME|config.json");
  from.write_gpus(0);
  from.imported.scenario["plan"] = plan;
  return from.finish(free_of_trainers());
}

std::string unread_program(const Json& yaml) {
  struct Sign {
    const char* key;
    const char* program;
  };
  static constexpr std::array kSigns = {Sign{"max_duration", "OLMo"},
                                        Sign{"pipe-parallel-size", "GPT-NeoX"},
                                        Sign{"pipe_parallel_size", "GPT-NeoX"},
                                        Sign{"model-parallel-size", "GPT-NeoX"},
                                        Sign{"student_overrides", "MaxText's distillation"},
                                        Sign{"recipe", "NeMo-Automodel or torchtune"},
                                        Sign{"_component_", "torchtune"}};
  if (!yaml.is_object()) return "";
  for (const Sign& sign : kSigns)
    if (yaml.contains(sign.key)) return sign.program;
  return "";
}

}  // namespace rehearse
