#include "frameworks/trainer_keys.h"

#include <array>

#include "frameworks/fsdp_arguments.h"
#include "frameworks/torch_defaults.h"
#include "frameworks/trainer_yaml.h"

namespace rehearse {

namespace {

constexpr const char* kWideWeights = "weights are counted unquantized";
constexpr const char* kOwnKernels = "the kernels of the profile are counted";

// transformers/training_args.py, LLaMA-Factory's hparams and axolotl's configuration reference, with the
// values that are counted.
constexpr std::array kIgnoredOfTrainers = {
    CountedKey{"rl", "null", kOneModel, "more memory, more time"},
    CountedKey{"beta", "null", kOneModel,
               "more memory, more time"},  // TRL: of preferences and of reinforcement learning
    CountedKey{"reward_funcs", "null", kOneModel, "more memory, more time"},
    CountedKey{"padding_free", "false", "every sequence has its full length", "less time"},
    CountedKey{"reward_model", "false", kOneModel, "more memory, more time"},
    CountedKey{"qat", "null", "no fake quantization is counted"},
    CountedKey{"load_in_4bit", "false", kWideWeights, "less memory, more time"},
    CountedKey{"load_in_8bit", "false", kWideWeights, "less memory, more time"},
    CountedKey{"gptq", "false", kWideWeights, "less memory, more time"},
    CountedKey{"quantization_bit", "null", kWideWeights, "less memory, more time"},
    CountedKey{"use_unsloth", "false", kOwnKernels, "less memory, less time"},
    CountedKey{"use_kernels", "false", kOwnKernels},
    CountedKey{"use_scattermoe", "false", kOwnKernels, "less time"},
    CountedKey{"use_sonicmoe", "false", kOwnKernels, "less time"},
    CountedKey{"lora_mlp_kernel", "false", kOwnKernels},
    CountedKey{"lora_qkv_kernel", "false", kOwnKernels},
    CountedKey{"lora_o_kernel", "false", kOwnKernels},
    CountedKey{"flash_attn_cross_entropy", "false", kOwnKernels},
    CountedKey{"flash_attn_rms_norm", "false", kOwnKernels},
    CountedKey{"flash_attn_fuse_mlp", "false", kOwnKernels},
    CountedKey{"cut_cross_entropy", "false", "the logits of all tokens are counted at once: more memory",
               "less memory"},
    CountedKey{"torch_compile", "false", kUncompiled, "less time"},
    CountedKey{"resize_token_embeddings_to_32x", "false", "the vocabulary of --model is counted"},
    CountedKey{"unfrozen_parameters", "null", kAllTrained, "less memory, less time"},
    CountedKey{"freeze_trainable_layers", "null", kAllTrained, "less memory, less time"},
    CountedKey{"freeze_trainable_modules", "null", kAllTrained, "less memory, less time"},
    CountedKey{"freeze_language_model", "false", "the language model is counted as trained",
               "less memory, less time"},
    CountedKey{"train_mm_proj_only", "false", "the language model is counted as trained",
               "less memory, less time"},
    CountedKey{"use_galore", "false", "the state of Adam is counted", "less memory"},
    CountedKey{"use_apollo", "false", "the state of Adam is counted", "less memory"},
    CountedKey{"use_badam", "false", "the state of Adam is counted", "less memory"},
    CountedKey{"use_adam_mini", "false", "the state of Adam is counted", "less memory"},
    CountedKey{"use_muon", "false", "the state and step of Adam are counted", "less memory, more time"},
    CountedKey{"mixture_of_depths", "null", "every layer is counted for every token",
               "less memory, less time"},
    CountedKey{"neftune_noise_alpha", "null", "no noise on the embedding is counted"},
    CountedKey{"auto_find_batch_size", "false", "the microbatch of the file is counted",
               "less memory, less time"},
    CountedKey{"ddp_find_unused_parameters", "false", "no search for unused parameters is counted"},
    CountedKey{"activation_offloading", "false", "activations are counted on the GPU",
               "less memory, more time"},
    CountedKey{"tiled_mlp", "false", "the MLP is counted for the whole sequence at once",
               "less memory, more time"},
    CountedKey{"group_by_length", "false", "every sequence has its full length", "less time"},
    CountedKey{"relora", "false", kAllTrained, "less memory, less time"},
    CountedKey{"fp8", "false", "GEMMs are counted in the precision of bf16 and fp16", "less time"}};

}  // namespace

std::span<const CountedKey> ignored_of_trainers() {
  return kIgnoredOfTrainers;
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
