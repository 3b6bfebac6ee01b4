#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"
#include "frameworks/optimizer_note.h"
#include "frameworks/other_yaml.h"
#include "frameworks/plan_yaml.h"
#include "frameworks/shell_run.h"

namespace rehearse {

namespace {

constexpr const char* kActor = "actor_rollout_ref.actor";

std::int64_t positive(PlanYaml& from, const std::string& path, std::int64_t fallback) {
  return std::max<std::int64_t>(1, from.integer(path, fallback));
}

// verl/workers/config/engine.py, McoreEngineConfig.
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
  plan["overlap_grad_reduce"] = plan["overlap_param_gather"] = false;
  const std::string network = engine + ".override_transformer_config";
  const std::string recompute = from.text(network + ".recompute_granularity");
  plan["recompute"] = recompute.empty() ? "none" : recompute;
  if (recompute == "full") {
    plan["recompute_method"] = from.text(network + ".recompute_method");
    plan["recompute_num_layers"] = positive(from, network + ".recompute_num_layers", 1);
  }
}

// verl/workers/config/engine.py, FSDPEngineConfig.
void add_fsdp(PlanYaml& from, const std::string& engine, const std::string& ulysses, std::int64_t gpus,
              Json& plan) {
  plan["zero"] = from.on(engine + ".reshard_after_forward", true) ? 3 : 2;
  from.ignore_unless(engine + ".model_dtype", "fp32", "shards and optimizer state are counted in fp32");
  from.ignore_unless(engine + ".forward_prefetch", false,
                     "gathers of the forward pass begin as PyTorch's do by default");
  from.ignore_unless(engine + ".full_determinism", false, "kernels are counted without it: too fast");
  const Json* size = from.find(engine + ".fsdp_size");
  if (size != nullptr && *size != -1) {
    const std::int64_t shard = from.integer(engine + ".fsdp_size", 0);
    if (shard > 0 && shard < gpus) plan["zero_shard"] = shard;
  }
  if (const std::int64_t degree = from.integer(ulysses, 1); degree > 1) {
    plan["cp"] = degree;
    plan["cp_comm_type"] = "a2a";
  }
}

// FSDP1 unless the strategy is fsdp2.
const char* framework_of(const std::string& strategy) {
  return strategy == "fsdp2" ? "fsdp" : "fsdp1";
}

void add_precision(PlanYaml& from, const std::string& engine, Json& plan) {
  plan["precision"] = from.text(engine + ".dtype") == "float16" ? "fp16" : "bf16";
}

void add_fused(PlanYaml& from, const std::string& model) {
  for (const char* key : {".use_liger", ".use_fused_kernels"})
    from.ignore_unless(model + key, false,
                       "logits and loss are counted without its fused kernels: more memory");
}

void add_offload(PlanYaml& from, const std::string& engine, Json& plan) {
  for (const char* key : {"optimizer_offload", "offload_policy"})
    if (from.on(engine + "." + key)) plan["offload"] = "optimizer";
  for (const char* key : {"param_offload", "offload_params", "grad_offload", "cpu_offload"})
    if (from.on(engine + "." + key))
      from.note(engine + "." + key, "is ignored: parameters and gradients are counted on the GPU");
}

// Of microbatches on one GPU; the older key counts those of all of them.
void add_batch(PlanYaml& from, const std::string& before, std::int64_t all, std::int64_t replicas,
               Json& plan) {
  if (all > 0) plan["global_batch"] = all;
  if (const std::int64_t each = from.integer(before + "_per_gpu", 0, "/plan/micro_batch"); each > 0)
    plan["micro_batch"] = each;
  else if (const std::int64_t together = from.integer(before, 0); together > 0 && replicas > 0)
    plan["micro_batch"] = std::max<std::int64_t>(1, together / replicas);
  else
    from.imported.notes.push_back(before + "_per_gpu is not given: pass --mbs");
}

Imported finish(PlanYaml& from, const std::string& model, Json plan) {
  const std::string path = from.text(model);
  from.imported.notes.push_back(
      path.empty()
          ? "the file names no model: pass --model"
          : fmt::format("{} {} is not looked up: pass --model NAME|config.json", from.place(model), path));
  from.imported.scenario["plan"] = std::move(plan);
  return from.finish({"algorithm",
                      "critic",
                      "custom_reward_function",
                      "global_profiler",
                      "ray_kwargs",
                      "ref",
                      "reward_manager",
                      "reward_model",
                      "rollout",
                      "trainer",
                      "transfer_queue",
                      "data",
                      "hybrid_engine",
                      "_target_",
                      "actor_rollout_ref.ref",
                      "actor_rollout_ref.rollout",
                      "checkpoint",
                      "profiler",
                      "policy_loss",
                      "clip_ratio",
                      "clip_ratio_c",
                      "clip_ratio_high",
                      "clip_ratio_low",
                      "entropy_coeff",
                      "grad_clip",
                      "kl_loss_coef",
                      "kl_loss_type",
                      "loss_agg_mode",
                      "lr",
                      "lr_warmup_steps",
                      "lr_warmup_steps_ratio",
                      "ppo_epochs",
                      "shuffle",
                      "optim",
                      "seed",
                      "trust_remote_code",
                      "external_lib",
                      "use_shm",
                      "use_kl_loss",
                      "data_loader_seed",
                      "defaults",
                      "hydra",
                      "override_config",
                      "custom_chat_template",
                      "use_torch_compile",
                      "wrap_policy",
                      "use_orig_params",
                      "use_mbridge",
                      "load_weight",
                      "use_remove_padding"});
}

Imported actor(PlanYaml& from, std::int64_t gpus) {
  const std::string base = kActor, strategy = from.text(base + ".strategy");
  const bool megatron =
      strategy == "megatron" || (strategy.empty() && from.find(base + ".megatron") != nullptr);
  Json plan = {{"framework", framework_of(strategy)}};
  const std::string engine = base + (megatron ? ".megatron" : ".fsdp_config");
  if (megatron)
    add_megatron(from, engine, plan);
  else
    add_fsdp(from, engine, base + ".ulysses_sequence_parallel_size", gpus, plan);
  add_precision(from, engine, plan);
  add_fused(from, "actor_rollout_ref.model");
  add_offload(from, engine, plan);
  if (!megatron)
    plan["recompute"] =
        from.on("actor_rollout_ref.model.enable_gradient_checkpointing", true) ? "full" : "none";
  const std::int64_t replicas =
      gpus / std::max<std::int64_t>(1, plan.value("tp", std::int64_t{1}) * plan.value("pp", std::int64_t{1}) *
                                           plan.value("cp", std::int64_t{1}));
  const std::int64_t samples = positive(from, "actor_rollout_ref.rollout.n", 1);
  add_batch(from, base + ".ppo_micro_batch_size", from.integer(base + ".ppo_mini_batch_size", 256) * samples,
            replicas, plan);
  const std::int64_t seq =
      from.integer("data.max_prompt_length", 512) + from.integer("data.max_response_length", 512);
  plan["seq"] = seq;
  plan["clip_grad"] = from.number(base + (megatron ? ".optim.clip_grad" : ".grad_clip"), 1);
  if (from.on(base + ".use_dynamic_bsz"))
    from.note(base + ".use_dynamic_bsz", "is approximated: every sequence has its full length");
  from.imported.notes.emplace_back(
      "verl: one update of the actor is counted; generation, reference, critic and reward are not");
  return finish(from, "actor_rollout_ref.model.path", std::move(plan));
}

Imported finetuning(PlanYaml& from, std::int64_t gpus) {
  Json plan = {{"framework", framework_of(from.text("model.strategy"))}};
  add_fsdp(from, "model.fsdp_config", "ulysses_sequence_parallel_size", gpus, plan);
  add_precision(from, "model.fsdp_config", plan);
  add_fused(from, "model");
  add_offload(from, "model.fsdp_config", plan);
  plan["recompute"] = from.on("model.enable_gradient_checkpointing", true) ? "full" : "none";
  add_batch(from, "data.micro_batch_size", from.integer("data.train_batch_size", 256),
            gpus / plan.value("cp", std::int64_t{1}), plan);
  plan["seq"] = from.integer("data.max_length", 1024);
  plan["clip_grad"] = from.number("optim.clip_grad", 1);
  if (from.integer("model.lora_rank", 0) > 0)
    from.note("model.lora_rank", "is ignored: all parameters are counted as trained");
  return finish(from, from.find("model.partial_pretrain") ? "model.partial_pretrain" : "model.path",
                std::move(plan));
}

bool is_module(const std::string& word) {
  return word.starts_with("verl.trainer.");
}

}  // namespace

bool is_verl(const Json& yaml) {
  if (!yaml.is_object()) return false;
  return yaml.contains("actor_rollout_ref") || at_path(yaml, "model.partial_pretrain") != nullptr;
}

Imported import_verl(const YamlText& yaml, const std::string& file, const ImportRequest& request) {
  PlanYaml from(yaml, file, request);
  const std::int64_t per_node = from.integer("trainer.n_gpus_per_node", 8, "/gpus"),
                     nodes = std::max<std::int64_t>(1, from.integer("trainer.nnodes", 1, "/gpus"));
  const std::int64_t gpus = request.gpus > 0 ? request.gpus : per_node * nodes;
  from.write_gpus(gpus);
  return yaml.json.contains("actor_rollout_ref") ? actor(from, gpus) : finetuning(from, gpus);
}

bool starts_verl(const std::string& script) {
  return script.find("verl.trainer.") != std::string::npos;
}

YamlText verl_settings(const std::string& script, const std::string& file, const ShellInputs& inputs,
                       std::vector<std::string>& notes) {
  if (!is_utf8(script)) throw InputError({file, "", "must be text in UTF-8", "", ""});
  const ShellRun run = shell_run(script, file, inputs);
  notes = run.notes;
  const auto starts = [](const ShellCommand& command) {
    return std::ranges::any_of(command.words, [](const ShellWord& word) { return is_module(word.text); });
  };
  const auto command = std::ranges::find_if(run.commands, starts);
  if (command == run.commands.end())
    throw InputError({file, "", "has no command that starts a trainer of verl", "",
                      "a file with python3 -m verl.trainer.main_ppo NAME=VALUE ..."});
  YamlText settings;
  settings.json = Json::object();
  for (const ShellWord& word : command->words) {
    const std::size_t equals = word.text.find('=');
    std::string path = word.text.substr(0, equals);
    path.erase(0, path.find_first_not_of('+'));
    if (equals == std::string::npos || path.empty() || path.find_first_of("-$/ ") != std::string::npos)
      continue;
    std::string pointer = "/" + path;
    std::ranges::replace(pointer, '.', '/');
    Json* at = &settings.json;
    std::istringstream steps(path);
    for (std::string step; std::getline(steps, step, '.');) {
      if (!at->is_object()) *at = Json::object();  // "optim=fsdp" names a file of settings
      at = &(*at)[step];
    }
    *at = plain_yaml(word.text.substr(equals + 1));
    settings.lines[pointer] = word.line;
  }
  return settings;
}

}  // namespace rehearse
