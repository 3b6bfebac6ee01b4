#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/error.h"
#include "frameworks/fsdp_arguments.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/other_yaml.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/torch_defaults.h"
#include "frameworks/verl_engine.h"

namespace rehearse {

namespace {

constexpr const char* kActor = "actor_rollout_ref.actor";

std::int64_t positive(PlanYaml& from, const std::string& path, std::int64_t fallback,
                      const std::string& pointer = "") {
  return from.integer(path, fallback, pointer, 1);
}

// Keys of the trainer's update, verl b178a3cd (verl/workers/config/), with the values that are counted.
constexpr const char* kEntropy =
    "the entropy over the logits is not counted: the step is predicted too fast, with too little memory";
constexpr std::array kIgnoredOfActor = {
    CountedKey{"calculate_entropy", "false", kEntropy, "more memory, more time"},
    CountedKey{"entropy_coeff", "0", kEntropy, "more memory, more time"},
    CountedKey{"use_prefix_grouper", "false", "each sample is counted with its own prompt", "less time"},
    CountedKey{"calculate_sum_pi_squared", "false", "the further sum over the logits is not counted"},
    CountedKey{"router_replay.mode", "\"disabled\"", "experts are counted as routed anew"}};
constexpr std::array kIgnoredOfModel = {
    CountedKey{"enable_activation_offload", "false", "activations are counted on the GPU",
               "less memory, more time"},
    CountedKey{"use_liger", "false", "its fused kernels are not counted: too slow, with too much memory",
               "less memory, less time"},
    CountedKey{"use_fused_kernels", "false",
               "logits and loss are counted without its fused kernels: more memory",
               "less memory, less time"},
    CountedKey{"tiled_mlp.enabled", "false", "the MLP is counted for the whole sequence at once",
               "less memory, more time"},
    CountedKey{"mtp.enable", "false", "no multi-token prediction layer is counted"},
    CountedKey{"lora_rank", "0", "all parameters are counted as trained", "less memory, less time"},
    CountedKey{"override_config", "{}", "the network that --model names is counted"},
    CountedKey{"use_remove_padding", "false", "every sequence has its full length, so that none is shorter",
               "less time"}};
constexpr std::array kIgnoredOfFsdpEngine = {
    CountedKey{"model_dtype", "\"fp32\"", "shards and optimizer state are counted in fp32", "less memory"},
    CountedKey{"full_determinism", "false", "kernels are counted without it: too fast"}};
constexpr std::array kIgnoredOfMegatronOptimizer = {
    CountedKey{"optimizer", "\"adam\"", "the state and step of Adam are counted",
               "less memory, more memory, less time, more time"},
    CountedKey{"override_optimizer_config.use_precision_aware_optimizer", "false", "state is counted in fp32",
               "less memory"},
    CountedKey{"override_optimizer_config.overlap_cpu_optimizer_d2h_h2d", "false",
               "copies are counted as the offload has them"}};

// megatron/core/transformer/transformer_config.py: "flex" is DeepEP where that is turned on.
void dispatcher(PlanYaml& from, const std::string& network, Json& plan) {
  const bool is_deep = from.on(network + ".moe_enable_deepep");
  const std::string type = from.text(network + ".moe_token_dispatcher_type");
  if (is_deep || type == "flex") plan["moe_dispatcher"] = "deepep";
  if (!is_deep && (type == "allgather" || type == "alltoall_seq"))
    from.note(network + ".moe_token_dispatcher_type",
              type + " is approximated: tokens are priced as an all-to-all");
}

// verl/workers/config/engine.py, McoreEngineConfig. Scripts override values of TransformerConfig; only its
// keys that are fields of a plan are read.
void add_transformer(PlanYaml& from, const std::string& network, Json& plan) {
  const std::string recompute = from.text(network + ".recompute_granularity");
  plan["recompute"] = recompute.empty() ? "none" : recompute;
  if (recompute == "full") {
    plan["recompute_method"] = from.text(network + ".recompute_method");
    plan["recompute_num_layers"] = positive(from, network + ".recompute_num_layers", 1);
  }
  if (const Json* modules = from.find(network + ".recompute_modules"); recompute == "selective" && modules) {
    std::vector<std::string> words;
    for (const Json& each : modules->is_array() ? *modules : Json::array({*modules})) {
      std::string word = each.is_string() ? each.get<std::string>() : each.dump();
      std::erase_if(
          word, [](char letter) { return letter == '[' || letter == ']' || letter == '"' || letter == ' '; });
      words.push_back(word);
    }
    plan["recompute_modules"] = join(words, ",");
  }
  const std::pair<const char*, const char*> counts[] = {
      {"first_rank_layers", "num_layers_in_first_pipeline_stage"},
      {"last_rank_layers", "num_layers_in_last_pipeline_stage"}};
  for (const auto& [key, name] : counts)
    if (const std::int64_t layers = from.integer(network + "." + name, 0); layers > 0) plan[key] = layers;
  const std::pair<const char*, const char*> switches[] = {
      {"embedding_as_layer", "account_for_embedding_in_pipeline_split"},
      {"loss_as_layer", "account_for_loss_in_pipeline_split"},
      {"fused_accumulation", "gradient_accumulation_fusion"},
      {"fused_rotary", "apply_rope_fusion"},
      {"fused_activation", "bias_activation_fusion"},
      {"fused_permute", "moe_permute_fusion"},
      {"fused_router", "moe_router_fusion"}};
  for (const auto& [key, name] : switches)
    if (from.find(network + "." + name)) plan[key] = from.on(network + "." + name);
  dispatcher(from, network, plan);
  const std::string attention = from.text(network + ".attention_backend");
  if (attention == "unfused" || attention == "local") plan["fused_attention"] = false;
}

void add_megatron(PlanYaml& from, const std::string& engine, Json& plan) {
  plan["framework"] = "megatron-core";
  const std::pair<const char*, const char*> degrees[] = {
      {"tp", "tensor_model_parallel_size"},   {"pp", "pipeline_model_parallel_size"},
      {"cp", "context_parallel_size"},        {"ep", "expert_model_parallel_size"},
      {"etp", "expert_tensor_parallel_size"}, {"vpp", "virtual_pipeline_model_parallel_size"}};
  for (const auto& [key, name] : degrees)
    if (const std::int64_t degree = from.integer(engine + "." + name, 0, std::string("/plan/") + key);
        degree > 0)
      plan[key] = degree;
  const std::int64_t tp = plan.value("tp", std::int64_t{1});
  plan["sequence_parallel"] = from.on(engine + ".sequence_parallel", true) && tp > 1;
  plan["zero"] = from.on(engine + ".use_distributed_optimizer", true) ? 1 : 0;
  const std::string ddp = engine + ".override_ddp_config";  // verl/utils/megatron_utils.py: off unless told
  plan["overlap_grad_reduce"] = from.on(ddp + ".overlap_grad_reduce");
  plan["overlap_param_gather"] = from.on(ddp + ".overlap_param_gather");
  if (!from.on(ddp + ".grad_reduce_in_fp32", true)) plan["grad_reduce"] = "bf16";
  add_transformer(from, engine + ".override_transformer_config", plan);
  from.imported.notes.emplace_back(
      "verl's Megatron engine: fusions that the file does not name are counted as Megatron-LM has them");
}

// Adam's step runs on the host for the given part of the state.
void add_megatron_optimizer(PlanYaml& from, const std::string& optimizer, Json& plan) {
  const std::string others = optimizer + ".override_optimizer_config";
  if (from.on(others + ".optimizer_cpu_offload")) {
    plan["offload"] = "optimizer";
    if (from.number(others + ".optimizer_offload_fraction", 1) != 1)
      from.note(others + ".optimizer_offload_fraction",
                "is approximated: all of the state is counted on the host");
  }
  from.ignore_unless(kIgnoredOfMegatronOptimizer, optimizer + ".");
}

std::string wire_type(const std::string& name) {
  return name.find("32") != std::string::npos  ? "fp32"
         : name == "fp16" || name == "float16" ? "fp16"
                                               : "bf16";
}

// verl/workers/config/engine.py, FSDPEngineConfig; fsdp_workers.py: gradients are reduced in fp32 by default,
// and AdamW is PyTorch's, unfused.
void add_fsdp(PlanYaml& from, const std::string& engine, const std::string& ulysses, std::int64_t gpus,
              Json& plan) {
  plan["zero"] = from.on(engine + ".reshard_after_forward", true) ? 3 : 2;
  const std::string reduce = from.text(engine + ".mixed_precision.reduce_dtype");
  plan["grad_reduce"] = reduce.empty() ? "fp32" : wire_type(reduce);
  from.find(engine + ".mixed_precision.param_dtype");
  from.find(engine + ".mixed_precision.buffer_dtype");
  plan["fused_adam"] = false;
  from.ignore_unless(kIgnoredOfFsdpEngine, engine + ".");
  from.ignore_unless(ignored_of_fsdp(), engine + ".");
  const std::int64_t shard = from.set_integer(engine + ".fsdp_size").value_or(0);
  if (shard > 0 && shard < gpus) plan["zero_shard"] = shard;
  const std::string degrees = from.find(ulysses) ? ulysses : engine + ".ulysses_sequence_parallel_size";
  if (const std::int64_t degree = positive(from, degrees, 1); degree > 1) {
    plan["cp"] = degree;
    plan["cp_comm_type"] = "a2a";
  }
}

void add_fsdp_optimizer(PlanYaml& from, const std::string& optimizer) {
  const std::string name = from.text(optimizer + ".optimizer");
  if (!name.empty()) note_optimizer(from.place(optimizer + ".optimizer"), name, from.imported);
  from.ignore_unless(optimizer + ".optimizer_impl", "torch.optim",
                     "the kernels of PyTorch's AdamW are counted");
}

// The framework is FSDP1 unless the strategy is fsdp2.
const char* framework_of(PlanYaml& from, const std::string& key, const std::string& strategy) {
  if (strategy != "" && strategy != "fsdp" && strategy != "fsdp2" && strategy != "megatron")
    from.violations.push_back({from.file(), from.place(key), "is an engine of verl that is not read",
                               "found " + strategy, "fsdp, fsdp2, megatron"});
  return strategy == "fsdp2" ? "fsdp" : "fsdp1";
}

void add_engine_type(PlanYaml& from, const std::string& engine, Json& plan) {
  const std::string type = from.text(engine + ".mixed_precision.param_dtype");
  plan["precision"] = wire_type(type.empty() ? from.text(engine + ".dtype") : type);
}

void add_kernels(PlanYaml& from, const std::string& model, bool by_transformers, Json& plan) {
  from.ignore_unless(kIgnoredOfModel, model + ".");
  if (by_transformers) add_eager_transformers(from.imported, plan);
  if (by_transformers) plan["fused_cross_entropy"] = true;  // flash-attn's (verl/utils/torch_functional.py)
  if (from.text(model + ".override_config.attn_implementation") == "eager") plan["fused_attention"] = false;
}

// Offload by hand brings parameters and state back before the update (fsdp_workers.py, update_actor).
void add_offload(PlanYaml& from, const std::string& engine, const std::vector<const char*>& stays,
                 Json& plan) {
  for (const char* key : {"param_offload", "optimizer_offload", "grad_offload"})
    if (from.on(engine + "." + key))
      from.note(
          engine + "." + key,
          "is ignored: state lies on the GPU during the update, and the copies around it are not counted");
  for (const char* key : stays) {
    if (!from.on(engine + "." + key)) continue;
    plan["offload"] = "optimizer";
    from.note(engine + "." + key, kOffloadsAll, kOffloadChanges);
  }
}

// The key per GPU states the sequences of a microbatch on one GPU; the older key counts those of all GPUs.
// With `tokens` a microbatch holds sequences up to that many tokens on each GPU of a sequence.
void add_microbatches(PlanYaml& from, const std::string& before, const std::string& dynamic,
                      const std::string& tokens, std::int64_t all, std::int64_t replicas, Json& plan) {
  if (all > 0) plan["global_batch"] = all;
  if (!dynamic.empty() && from.on(dynamic)) {
    const std::int64_t most = std::min<std::int64_t>(positive(from, tokens, 16384), std::int64_t{1} << 30);
    const std::int64_t degree = std::min<std::int64_t>(plan.value("cp", std::int64_t{1}), 1 << 20);
    const std::int64_t seq = std::max<std::int64_t>(1, plan.value("seq", std::int64_t{1}));
    plan["micro_batch"] = std::max<std::int64_t>(1, most * degree / seq);
    from.note(dynamic, fmt::format("is approximated: microbatches of {} full sequences, as {} allows",
                                   plan["micro_batch"].get<std::int64_t>(), tokens));
    from.find(before + "_per_gpu");
    from.find(before);
    return;
  }
  if (!tokens.empty()) from.find(tokens);
  if (const std::int64_t each = from.integer(before + "_per_gpu", 0, "/plan/micro_batch", 1); each > 0)
    plan["micro_batch"] = each;
  else if (const std::int64_t together = from.integer(before, 0, "/plan/micro_batch", 1);
           together > 0 && replicas > 0)
    plan["micro_batch"] = std::max<std::int64_t>(1, together / replicas);
  else if (!from.is_over("/plan/micro_batch"))
    from.imported.notes.push_back(before + "_per_gpu is not given: pass --mbs");
}

// Keys without effect on the time and memory of the update.
const std::set<std::string>& free_of_verl() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> all = keys_of(
        "*._target_ algorithm checkpoint critic custom_reward_function data data_loader_seed "
        "defaults global_profiler hydra ray_kwargs ray_init reward reward_manager reward_model "
        "rollout trainer transfer_queue async_training profiler actor_rollout_ref.hybrid_engine "
        "actor_rollout_ref.ref actor_rollout_ref.rollout");
    const std::string actor = kActor;
    const auto add = [&](std::initializer_list<std::string> sections, const char* words) {
      for (const std::string& section : sections)
        for (const std::string& key : keys_of(words)) all.insert(section + key);
    };
    add({actor + "."},
        "checkpoint profiler policy_loss clip_ratio clip_ratio_c clip_ratio_high clip_ratio_low "
        "tau_pos tau_neg kl_loss_coef kl_loss_type use_kl_loss loss_agg_mode loss_scale_factor "
        "loss_mode ppo_epochs shuffle data_loader_seed rollout_n use_torch_compile load_weight "
        "entropy_from_logits_with_chunking entropy_checkpointing sum_pi_squared_checkpointing "
        "use_rollout_log_probs nccl_timeout use_remove_padding use_fused_kernels");
    add({actor + ".optim.", "optim."},
        "lr betas weight_decay lr_warmup_steps lr_warmup_steps_ratio total_training_steps "
        "min_lr_ratio num_cycles lr_scheduler_type lr_scheduler warmup_style min_lr lr_decay_steps "
        "lr_decay_style lr_warmup_init lr_wsd_decay_style lr_wsd_decay_steps weight_decay_incr_style "
        "use_checkpoint_opt_param_scheduler warmup_steps_ratio");
    for (const std::string& engine :
         {actor + ".fsdp_config.", std::string("engine."), std::string("model.fsdp_config.")})
      all.merge(free_of_fsdp(engine));
    add({actor + ".fsdp_config.", actor + ".megatron.", "engine.", "model.fsdp_config."},
        "seed forward_only use_torch_compile strategy dist_checkpointing_path "
        "dist_checkpointing_prefix use_dist_checkpointing use_mbridge vanilla_mbridge "
        "use_remove_padding entropy_from_logits_with_chunking entropy_checkpointing");
    add({"actor_rollout_ref.model.", "model."},
        "path hf_config_path tokenizer_path use_shm trust_remote_code custom_chat_template "
        "external_lib lora_alpha target_modules target_parameters exclude_modules lora_adapter_path "
        "fused_kernel_options tiled_mlp.num_shards");
    return all;
  }();
  return keys;
}

Imported finish(PlanYaml& from, const std::string& model, Json plan) {
  const std::string path = from.text(model);
  if (!from.is_over("/model"))
    from.imported.notes.push_back(
        path.empty()
            ? "the file names no model: pass --model"
            : fmt::format("{} {} is not looked up: pass --model NAME|config.json", from.place(model), path));
  from.imported.scenario["plan"] = std::move(plan);
  return from.finish(free_of_verl());
}

std::int64_t replicas_of(const Json& plan, std::int64_t gpus) {
  std::int64_t replicas = gpus;
  for (const char* key : {"tp", "pp", "cp"})
    replicas /= std::max<std::int64_t>(1, plan.value(key, std::int64_t{1}));
  return replicas;
}

Imported actor(PlanYaml& from, const Json& yaml, std::int64_t gpus) {
  const std::string base = kActor, said = from.text(base + ".strategy"),
                    strategy = said.empty() ? verl_engine(yaml) : said, model = "actor_rollout_ref.model";
  from.find("model_engine");
  const bool megatron =
      strategy == "megatron" || (strategy.empty() && from.find(base + ".megatron") != nullptr);
  Json plan = {{"framework", framework_of(from, base + ".strategy", strategy)}};
  const std::string engine = base + (megatron ? ".megatron" : ".fsdp_config");
  plan["seq"] =
      positive(from, "data.max_prompt_length", 512) + positive(from, "data.max_response_length", 512);
  if (megatron) {
    add_megatron(from, engine, plan);
    add_megatron_optimizer(from, base + ".optim", plan);
  } else {
    add_fsdp(from, engine, base + ".ulysses_sequence_parallel_size", gpus, plan);
    add_fsdp_optimizer(from, base + ".optim");
    plan["recompute"] = from.on(model + ".enable_gradient_checkpointing", true) ? "full" : "none";
  }
  add_engine_type(from, engine, plan);
  add_kernels(from, model, !megatron, plan);
  add_offload(from, engine, {"offload_policy"}, plan);
  const std::int64_t samples =
      std::min<std::int64_t>(positive(from, "actor_rollout_ref.rollout.n", 1), 1 << 20);
  const std::int64_t prompts = positive(from, base + ".ppo_mini_batch_size", 256, "/plan/global_batch");
  add_microbatches(from, base + ".ppo_micro_batch_size", base + ".use_dynamic_bsz",
                   base + ".ppo_max_token_len_per_gpu", prompts * samples, replicas_of(plan, gpus), plan);
  plan["clip_grad"] = from.number(base + (megatron ? ".optim.clip_grad" : ".grad_clip"), 1);
  for (const char* key : {".optim.clip_grad", ".grad_clip"}) from.find(base + key);
  from.ignore_unless(kIgnoredOfActor, base + ".");
  // verl/workers/fsdp_workers.py freezes the whole vision module.
  if (from.on(base + ".freeze_vision_tower")) plan["freeze_tower"] = plan["freeze_projector"] = true;
  from.imported.notes.emplace_back(
      "verl: one update of the actor is counted, with prompts and responses of their full lengths; "
      "generation, "
      "reference, critic and reward are not");
  return finish(from, model + ".path", std::move(plan));
}

// Supervised finetuning by verl/trainer/fsdp_sft_trainer.py, or by sft_trainer.py with an engine of its own.
Imported finetuning(PlanYaml& from, std::int64_t gpus) {
  const bool has_engine = from.find("engine") != nullptr;
  const std::string engine = has_engine ? "engine" : "model.fsdp_config";
  const std::string key = has_engine ? "engine.strategy" : "model.strategy", said = from.text(key);
  if (said.empty())
    from.imported.notes.push_back(key + " is not given: fsdp2 is counted, the default since verl 0.5");
  const std::string strategy = said.empty() ? "fsdp2" : said;
  Json plan = {{"framework", framework_of(from, key, strategy)}};
  plan["seq"] = positive(from, "data.max_length", 1024, "/plan/seq");
  if (strategy == "megatron") {
    add_megatron(from, engine, plan);
    add_megatron_optimizer(from, "optim", plan);
  } else {
    add_fsdp(from, engine, "ulysses_sequence_parallel_size", gpus, plan);
    add_fsdp_optimizer(from, "optim");
    plan["recompute"] = from.on("model.enable_gradient_checkpointing", true) ? "full" : "none";
  }
  add_engine_type(from, engine, plan);
  add_kernels(from, "model", strategy != "megatron", plan);
  add_offload(from, engine, {"offload_policy", "cpu_offload"}, plan);
  from.ignore_unless("use_remove_padding", false,
                     "every sequence has its full length, so that none is shorter");
  add_microbatches(
      from, "data.micro_batch_size", has_engine ? "data.use_dynamic_bsz" : "", "data.max_token_len_per_gpu",
      positive(from, "data.train_batch_size", 256, "/plan/global_batch"), replicas_of(plan, gpus), plan);
  plan["clip_grad"] = from.number("optim.clip_grad", 1);
  return finish(from, from.find("model.partial_pretrain") ? "model.partial_pretrain" : "model.path",
                std::move(plan));
}

}  // namespace

bool is_verl(const Json& yaml) {
  if (!yaml.is_object()) return false;
  return yaml.contains("actor_rollout_ref") || at_path(yaml, "model.partial_pretrain") != nullptr ||
         (at_path(yaml, "data.train_batch_size") != nullptr && at_path(yaml, "model.path") != nullptr);
}

Imported import_verl(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request, Typing::strict);  // OmegaConf without a schema
  const std::int64_t per_node = positive(from, "trainer.n_gpus_per_node", 8, "/gpus"),
                     nodes = positive(from, "trainer.nnodes", 1, "/gpus");
  const std::int64_t gpus =
      request.gpus > 0 ? request.gpus
                       : std::min<std::int64_t>(per_node, 1 << 20) * std::min<std::int64_t>(nodes, 1 << 20);
  from.write_gpus(gpus);
  return yaml.json.contains("actor_rollout_ref") ? actor(from, yaml.json, gpus) : finetuning(from, gpus);
}

}  // namespace rehearse
