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
#include "frameworks/trainer_keys.h"

namespace rehearse {

namespace {

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
    from.note("fsdp", std::string("offload ") + kOffloadsAll, kOffloadChanges);
  }
}

void add_fsdp_of_trainer(PlanYaml& from, Json& plan) {
  add_strategy(from, plan);
  std::int64_t version = 1;
  for (const char* key : {"fsdp_version", "fsdp_config.version", "fsdp_config.fsdp_version"})
    version = std::max(version, from.integer(key, 1, "", 1));
  const bool is_split = plan.contains("tp") || plan.contains("cp") || plan.contains("zero_shard");
  if (plan["zero"] != 0 && version < 2 && !is_split) plan["framework"] = "fsdp1";
  for (const std::string before : {"fsdp_config.", "fsdp_config.fsdp_"}) {  // of transformers, and of axolotl
    // Of FSDP2 a switch, of FSDP1 a strategy.
    const std::string reshard = from.choice(before + "reshard_after_forward",
                                            {{"true", ""},
                                             {"True", ""},
                                             {"false", "2"},
                                             {"False", "2"},
                                             {"FULL_SHARD", ""},
                                             {"SHARD_GRAD_OP", "2"},
                                             {"HYBRID_SHARD", ""},
                                             {"NO_SHARD", "0"}},
                                            "");
    if (!reshard.empty()) plan["zero"] = std::stoi(reshard);
    if (from.on(before + "offload_params")) {
      plan["offload"] = "optimizer";
      from.note(before + "offload_params", kOffloadsAll, kOffloadChanges);
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
  for (OmittedEffect& effect : sharding.omitted) from.imported.omitted.push_back(std::move(effect));
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
    if (!adam.contains(name)) note_optimizer(from.place(key), name, from.imported);
  }
  // transformers' default of 1 holds for both programs, and for DeepSpeed's "auto".
  if (!plan.contains("clip_grad") || from.find("max_grad_norm"))
    plan["clip_grad"] = from.number("max_grad_norm", 1);
  if (const std::string stage = from.text("stage");
      is_factory && !stage.empty() && stage != "sft" && stage != "pt")
    from.note("stage", stage + " is ignored: " + kOneModel, "more memory, more time");
  for (const char* key : {"finetuning_type", "adapter"})
    if (const std::string method = from.text(key); !method.empty() && method != "full")
      from.note(key, method + " is ignored: " + kAllTrained, kFewTrained);
  if (is_factory && !from.find("finetuning_type")) {
    from.imported.notes.emplace_back(
        "finetuning_type is not given: LLaMA-Factory's default is lora, but all parameters are counted as "
        "trained");
    omit(from.imported, "finetuning_type lora by default", kAllTrained, kFewTrained);
  }
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

// true, false, and axolotl's auto and full.
std::string switch_word(PlanYaml& from, const char* key) {
  return from.choice(key, {{"true", "true"}, {"false", "false"}, {"auto", "auto"}, {"full", "true"}}, "");
}

// bf16 by default: trl/trainer/base_config.py, and axolotl's schema, whose "auto" takes it on GPUs that have
// it. LLaMA-Factory keeps transformers' fp32.
std::string default_of_bf16(PlanYaml& from, bool is_axolotl, bool is_factory, const std::string& half) {
  const bool is_said = from.find("bf16") || half == "true" || from.on("bfloat16") || from.on("float16");
  if (is_said || is_factory) return switch_word(from, "bf16");
  if (!from.is_over("/plan/precision"))
    from.imported.notes.push_back(fmt::format("bf16 is not given: the default of {}, bf16, is counted",
                                              is_axolotl ? "axolotl" : "TRL"));
  return is_axolotl ? "auto" : "true";
}

void add_precision_of_trainer(PlanYaml& from, bool is_axolotl, bool is_factory, Json& plan) {
  const std::string half = switch_word(from, "fp16"), loaded = type_of_weights(from);
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
    from.note("gradient_checkpointing", checkpointing + " is approximated: inputs of layers stay on the GPU",
              "less memory, more time");
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
  plan["micro_batch"] = from.integer(batch, is_axolotl ? 1 : 8, "/plan/micro_batch", 1);
  from.imported.accumulation = from.integer("gradient_accumulation_steps", 1, "", 1);
  for (const char* key : {"cutoff_len", "sequence_len", "max_seq_length", "max_length"})
    if (const std::int64_t seq = from.integer(key, 0, "/plan/seq", 1); seq > 0) plan["seq"] = seq;
  if (!plan.contains("seq") && !from.is_over("/plan/seq")) {
    plan["seq"] = default_length(is_axolotl, is_factory);
    from.imported.notes.push_back(
        fmt::format("the length of sequences is not given: {} is counted, the program's default",
                    plan["seq"].get<std::int64_t>()));
  }
  bool full = from.on("pad_to_sequence_len");
  for (const char* key : {"packing", "sample_packing", "neat_packing"}) {
    const bool packs = from.on(key);
    full = full || packs;
    if (packs) from.note(key, "is approximated: attention spans the whole sequence, not each sample");
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
    if (const std::int64_t degree = from.integer(key, 1, "", 1); degree > 1) plan[field] = degree;
  const std::int64_t copies = from.integer("dp_replicate_size", 1, "", 1);
  // accelerate's mesh dp_shard_cp
  const std::int64_t shard = std::min<std::int64_t>(from.integer("dp_shard_size", 1, "", 1), 1 << 20) *
                             std::min<std::int64_t>(from.integer("context_parallel_size", 1, "", 1), 1 << 20);
  if (copies > 1 && shard > 1) plan["zero_shard"] = shard;
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
  const bool is_axolotl = yaml.json.contains("base_model");
  const bool is_factory = yaml.json.contains("finetuning_type") || yaml.json.contains("template");
  // axolotl/utils/schemas/config.py; HfArgumentParser.parse_dict; trl/scripts/utils.py, TrlParser.
  PlanYaml from(yaml, file, request, is_axolotl ? Typing::lax : is_factory ? Typing::strict : Typing::words);
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
  from.ignore_unless(ignored_of_trainers());
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

}  // namespace rehearse
