#include "frameworks/step_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "frameworks/plan_yaml.h"

namespace rehearse {

namespace {

enum class Part : std::uint8_t { network, experts, job, plan };

// `keys`: names of options that state the value, of any program, in underscores. One with a dot is the end of
// a path.
struct StepValue {
  const char* name;
  Part part;
  const char* pointer;  // of the scenario's field
  const char* keys;
};

constexpr std::array kStepValues = {
    StepValue{"layers", Part::network, "/model",
              "num_layers num_hidden_layers n_layers base_num_decoder_layers hybrid_layer_pattern "
              "hybrid_override_pattern encoder_num_layers num_layers_per_virtual_pipeline_stage"},
    StepValue{"hidden size", Part::network, "/model", "hidden_size d_model base_emb_dim"},
    StepValue{"attention heads", Part::network, "/model",
              "num_attention_heads n_heads base_num_query_heads num_heads"},
    StepValue{"MLP width", Part::network, "/model",
              "ffn_hidden_size intermediate_size base_mlp_dim expansion_ratio feed_forward.hidden_size "
              "moe_ffn_hidden_size moe_intermediate_size base_moe_mlp_dim"},
    StepValue{
        "vocabulary", Part::network, "/model",
        "vocab_size padded_vocab_size tokenizer_type tokenizer_model tokenizer_name_or_path vocab_file"},
    StepValue{"GPUs", Part::job, "/gpus", ""},
    StepValue{
        "sequence length", Part::plan, "/plan/seq",
        "seq_length seq_len sequence_length max_seq_len cutoff_len sequence_len max_seq_length max_length "
        "max_target_length max_prompt_length max_sequence_length max_context_length encoder_seq_length "
        "rollout_max_context_len rollout_max_response_len"},
    StepValue{"microbatch", Part::plan, "/plan/micro_batch",
              "micro_batch_size train_micro_batch_size_per_gpu per_device_train_batch_size local_batch_size "
              "training.batch_size device_train_microbatch_size per_device_batch_size "
              "ppo_micro_batch_size_per_gpu ppo_micro_batch_size micro_batch_size_per_gpu "
              "rank_microbatch_size ppo_max_token_len_per_gpu max_token_len_per_gpu max_tokens_per_gpu "
              "num_tokens_per_microbatch_per_dp_rank"},
    StepValue{"global batch", Part::plan, "/plan/global_batch",
              "global_batch_size gradient_accumulation_steps batch_accumulation_per_replica "
              "global_train_batch_size train_batch_size ppo_mini_batch_size megatron_lm_num_micro_batches "
              "num_tokens_per_train_step rollout_batch_size"},
    StepValue{"tensor parallelism", Part::plan, "/plan/tp",
              "tensor_model_parallel_size tensor_parallel_degree parallelism.tp autotp_size "
              "tensor_parallel_size ici_tensor_parallelism megatron_lm_tp_degree tp_config.degree "
              "parallelism_config_tp_size model_parallel_size"},
    StepValue{"pipeline parallelism", Part::plan, "/plan/pp",
              "pipeline_model_parallel_size pipeline_parallel_degree parallelism.pp pipeline.stages "
              "ici_pipeline_parallelism megatron_lm_pp_degree pp_config.degree"},
    StepValue{"context parallelism", Part::plan, "/plan/cp",
              "context_parallel_size context_parallel_degree sequence_parallel_degree "
              "ici_context_parallelism ulysses_sequence_parallel_size sequence_parallel_size "
              "cp_config.degree parallelism_config_cp_size ds_sequence_parallel_size"},
    StepValue{"expert parallelism", Part::experts, "/plan/ep",
              "expert_model_parallel_size expert_parallel_degree expert_parallel_size "
              "ici_expert_parallelism ep_config.degree moe_expert_parallel_size"},
    StepValue{"sharding of the state", Part::plan, "/plan/zero",
              "use_distributed_optimizer zero_stage zero_optimization.stage data_parallel_shard_degree "
              "data_parallel_replicate_degree distributed_type fsdp fsdp_sharding_strategy "
              "fsdp_reshard_after_forward deepspeed sharding_strategy reshard_after_forward fsdp_size "
              "dp_config.name shard_degree ici_fsdp_parallelism dcn_data_parallelism use_megatron_fsdp "
              "use_torch_fsdp2 data_parallel_sharding_strategy parallelism.dp deepspeed_config_file"},
    StepValue{"precision", Part::plan, "/plan/precision",
              "bf16 fp16 precision mixed_precision dtype mixed_precision_param param_dtype bf16.enabled "
              "fp16.enabled bfloat16.enabled pure_bf16 fp8_format fp8 autocast_precision quantization "
              "params_dtype"},
    StepValue{"recompute", Part::plan, "/plan/recompute",
              "recompute_granularity recompute_activations activation_checkpoint.mode "
              "gradient_checkpointing recompute_layer activation_checkpointing "
              "fsdp_activation_checkpointing remat_policy enable_gradient_checkpointing ac_config.mode "
              "checkpoint_activations activations_checkpoint_method activations_checkpoint_granularity "
              "activation_checkpoint_interval"},
    StepValue{"optimizer", Part::plan, "",
              "optimizer optim optimizer.name opt_type optimizer.type optim.type optimizer_factory.name "
              "optim.name optim.optimizer"}};

// "tokens.sequence_length" of any spelling.
std::string spelled(std::string name) {
  name.erase(0, name.find_first_not_of('-'));
  for (char& letter : name) letter = letter == '-' ? '_' : letter == '/' ? '.' : letter;
  return name;
}

bool states(const ImportedOption& option, const std::set<std::string>& keys) {
  const bool is_read = option.fate == OptionFate::used || option.fate == OptionFate::approximated;
  if (!is_read || option.value == "null") return false;
  std::vector<std::string> names = option.known_as;
  names.push_back(option.name);
  return std::ranges::any_of(names, [&](const std::string& each) {
    const std::string name = "." + spelled(each);
    return std::ranges::any_of(keys, [&](const std::string& key) { return name.ends_with("." + key); });
  });
}

bool has_experts(const Imported& imported, const SaidOverFile& over) {
  const Json experts = imported.model.is_object() ? imported.model.value("num_experts", Json()) : Json();
  const Json local = imported.model.is_object() ? imported.model.value("num_local_experts", Json()) : Json();
  const Json ep = imported.scenario.value("/plan/ep"_json_pointer, Json());
  return over.contains("/plan/ep") || (ep.is_number_integer() && ep > 1) ||
         std::ranges::any_of(std::array{experts, local},
                             [](const Json& count) { return count.is_number_integer() && count > 1; });
}

}  // namespace

Coverage coverage_of(const Imported& imported, const SaidOverFile& over) {
  Coverage coverage;
  const bool names_model = imported.scenario.contains("model");
  for (const StepValue& value : kStepValues) {
    const bool is_of_network = value.part == Part::network;
    if (value.part == Part::experts && !has_experts(imported, over)) continue;
    const std::set<std::string> keys = keys_of(value.keys);
    const bool is_stated =
        !imported.assumed.contains(value.name) &&
        std::ranges::any_of(imported.options, [&](const auto& option) { return states(option, keys); });
    const bool by_file = value.part == Part::job ? imported.scenario.contains("gpus")
                         : is_of_network         ? names_model || (is_stated && !imported.model.is_null())
                                                 : is_stated;
    const bool by_line = over.contains(value.pointer);
    (by_file || by_line ? coverage.read : coverage.assumed).emplace_back(value.name);
    if (is_stated || (is_of_network && names_model)) coverage.from_file.emplace_back(value.name);
  }
  return coverage;
}

std::string in_words(const Coverage& coverage) {
  return fmt::format("read {} of the {} values that shape a step{}", coverage.read.size(), coverage.all(),
                     coverage.assumed.empty() ? "" : "; assumed: " + join(coverage.assumed));
}

}  // namespace rehearse
