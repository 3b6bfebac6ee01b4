#include "frameworks/torchtitan_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "base/names.h"

namespace rehearse {

namespace {

struct Section {
  const char* name;
  const char* keys;  // with a blank between each two
};

// The dataclasses of v0.1.0 to v0.2.2 (torchtitan/config_manager.py, config/job_config.py) and of the
// experiments that add keys to them. Options of earlier releases (October 2024, February 2025) are included.
constexpr std::array kSections = {
    Section{"activation_checkpoint",
            "debug determinism_check early_stop memory_budget mode "
            "per_op_sac_force_recompute_mm_shapes_by_fqns preserve_rng_state selective_ac_option "
            "visualize_memory_budget_pareto"},
    Section{"checkpoint",
            "async_mode create_seed_checkpoint enable enable_checkpoint "
            "enable_first_step_checkpoint enable_ft_dataloader_checkpoints exclude_from_loading "
            "export_dtype folder initial_load_in_hf initial_load_in_hf_quantized initial_load_model_only "
            "initial_load_model_weights_only initial_load_path interval interval_type keep_latest_k "
            "last_save_in_hf last_save_model_only last_save_model_weights_only load_only load_step "
            "model_weights_only"},
    Section{"comm",
            "init_timeout_seconds mode save_traces_file_prefix save_traces_folder trace_buf_size "
            "train_timeout_seconds"},
    Section{"compile",
            "backend components enable enable_passes graph_passes joint_passes "
            "model_backend_override passes"},
    Section{"debug",
            "batch_invariant detect_anomaly deterministic deterministic_warn_only "
            "enable_structured_logging moe_force_load_balance print_config save_config_file seed "
            "spmd_typechecking"},
    Section{"experimental",
            "context_parallel_degree context_parallel_rotate_method custom_args_module "
            "custom_import custom_model_path enable_async_tensor_parallel enable_compiled_autograd "
            "pipeline_parallel_degree pipeline_parallel_microbatches pipeline_parallel_schedule "
            "pipeline_parallel_schedule_csv pipeline_parallel_split_points"},
    Section{"fault_tolerance",
            "enable fragment_sync_delay fragment_update_alpha group_size "
            "min_replica_size module_fqns_per_model_fragment num_fragments process_group "
            "process_group_timeout_ms replica_id semi_sync_method should_quantize sync_steps"},
    Section{"float8",
            "emulate enable_float8_linear enable_fsdp_float8_all_gather filter_fqns "
            "force_recompute_fp8_weight_in_bwd precompute_float8_dynamic_scale_for_fsdp recipe_name "
            "scaling_type_grad_output scaling_type_input scaling_type_weight"},
    Section{"job",
            "config_file custom_config_module description dump_folder print_args print_config "
            "save_config_file use_for_integration_test"},
    Section{"lr_scheduler", "decay_ratio decay_type lr_min min_lr_factor total_steps warmup_steps"},
    Section{"memory_estimation", "disable_fake_mode enable enabled"},
    Section{"metrics",
            "disable_color_printing enable_color_printing enable_tensorboard enable_wandb "
            "log_freq rank_0_only save_for_all_ranks save_tb_folder"},
    Section{"model",
            "converters flavor hf_assets_path name norm_type print_after_conversion "
            "tokenizer_path"},
    Section{"mx", "filter_fqns recipe_name use_fp8_dim1_cast_triton_kernel"},
    Section{"optimizer",
            "beta1 beta2 early_step_in_backward eps fused implementation lr name "
            "weight_decay"},
    Section{"parallelism",
            "context_parallel_degree context_parallel_load_balancer "
            "context_parallel_rotate_method data_parallel_replicate_degree data_parallel_shard_degree "
            "disable_loss_parallel enable_async_tensor_parallel enable_compiled_autograd "
            "expert_parallel_comm_backend expert_parallel_degree expert_tensor_parallel_degree "
            "fsdp_reshard_after_forward module_fqns_per_model_part pipeline_parallel_degree "
            "pipeline_parallel_expert_parallel_overlap pipeline_parallel_first_stage_less_layers "
            "pipeline_parallel_last_stage_less_layers pipeline_parallel_layers_per_stage "
            "pipeline_parallel_microbatch_size pipeline_parallel_schedule pipeline_parallel_schedule_csv "
            "pipeline_parallel_split_points tensor_parallel_degree"},
    Section{"profiling",
            "enable_memory_snapshot enable_profiling profile_freq profiler_active "
            "profiler_warmup save_memory_snapshot_folder save_traces_folder"},
    Section{"quantize.grouped_mm.float8", "fqns"},
    Section{"quantize.grouped_mm.mx", "fqns recipe_name"},
    Section{"quantize.linear.float8",
            "emulate enable_fsdp_float8_all_gather filter_fqns "
            "precompute_float8_dynamic_scale_for_fsdp recipe_name"},
    Section{"quantize.linear.mx", "filter_fqns mxfp8_dim1_cast_kernel_choice recipe_name"},
    Section{"training",
            "batch_size compile data_parallel_degree data_parallel_replicate_degree "
            "data_parallel_shard_degree fp8_linear "
            "dataset dataset_path debug_moe_force_load_balance deterministic disable_loss_parallel dtype "
            "enable_cpu_offload enable_loss_parallel fsdp_reshard_after_forward gc_debug gc_freq "
            "global_batch_size gradient_accumulation_steps local_batch_size max_norm mixed_precision_param "
            "mixed_precision_reduce "
            "seed seq_len steps tensor_parallel_degree warmup_steps"},
    Section{"training.dataloader", "num_workers persistent_workers pin_memory prefetch_factor"},
    Section{"validation", "dataset dataset_path enable freq local_batch_size seq_len steps"},
    Section{"validation.dataloader", "num_workers persistent_workers pin_memory prefetch_factor"}};

// Sections and keys without effect on the time and memory of a step.
constexpr std::array kFree = {"checkpoint",
                              "comm.init_timeout_seconds",
                              "comm.save_traces_file_prefix",
                              "comm.save_traces_folder",
                              "comm.trace_buf_size",
                              "comm.train_timeout_seconds",
                              "debug.deterministic_warn_only",
                              "debug.enable_structured_logging",
                              "debug.moe_force_load_balance",
                              "debug.print_config",
                              "debug.save_config_file",
                              "debug.seed",
                              "debug.spmd_typechecking",
                              "job",
                              "lr_scheduler",
                              "memory_estimation",
                              "metrics",
                              "profiling",
                              "validation",
                              "training.dataloader",
                              "training.dataset",
                              "training.dataset_path",
                              "training.debug_moe_force_load_balance",
                              "training.gc_debug",
                              "training.gc_freq",
                              "training.seed",
                              "training.steps",
                              "training.warmup_steps",
                              "model.hf_assets_path",
                              "model.tokenizer_path",
                              "model.print_after_conversion",
                              "optimizer.lr",
                              "optimizer.beta1",
                              "optimizer.beta2",
                              "optimizer.eps",
                              "optimizer.weight_decay",
                              "activation_checkpoint.debug",
                              "activation_checkpoint.determinism_check",
                              "activation_checkpoint.preserve_rng_state",
                              "activation_checkpoint.visualize_memory_budget_pareto"};

// Unsupported keys. `counted` is the counted value, in JSON; `effect` explains any other value.
struct Ignored {
  const char* key;
  const char* counted;
  const char* effect;
  const char* changes = "";  // above 10 % of the answer (base/omitted_effect.h)
};
constexpr const char* kAnyChange = "less memory, more memory, less time, more time";
constexpr const char* kCompiler =
    "the kernel times of the profile are used, without the compiler's own passes";
constexpr const char* kConverted = "all linear layers but the output are counted as converted";
constexpr const char* kOwnCode = "the code that it names is not read, and may change network and step";
constexpr const char* kDeterministic = "the faster kernels, which are not deterministic, are counted";
constexpr std::array kIgnored = {
    Ignored{"activation_checkpoint/per_op_sac_force_recompute_mm_shapes_by_fqns", R"(["moe.router.gate"])",
            "every second GEMM is recomputed, whatever its shape"},
    Ignored{"comm/mode", "\"default\"", "every rank is counted, and every message"},
    Ignored{"compile/backend", "\"inductor\"", kCompiler, kLessTime},
    Ignored{"compile/enable_passes", "false", kCompiler, kLessTime},
    Ignored{"compile/graph_passes", "[]", kCompiler, kLessTime},
    Ignored{"compile/joint_passes", "[]", kCompiler, kLessTime},
    Ignored{"compile/passes", "[]", kCompiler, kLessTime},
    Ignored{"compile/model_backend_override", "\"\"", kCompiler, kLessTime},
    Ignored{"debug/batch_invariant", "false", kDeterministic},
    Ignored{"debug/detect_anomaly", "false",
            "its checks of each kernel are not counted: the step is predicted too fast", kMoreTime},
    Ignored{"debug/deterministic", "false", kDeterministic},
    Ignored{"training/deterministic", "false", kDeterministic},
    Ignored{"experimental/custom_import", "\"\"", kOwnCode, kAnyChange},
    Ignored{"experimental/custom_args_module", "\"\"", kOwnCode, kAnyChange},
    Ignored{"experimental/custom_model_path", "\"\"", kOwnCode, kAnyChange},
    Ignored{"job/custom_config_module", "\"\"", kOwnCode, kAnyChange},
    Ignored{"experimental/enable_compiled_autograd", "false", kCompiler, kLessTime},
    Ignored{"parallelism/enable_compiled_autograd", "false", kCompiler, kLessTime},
    Ignored{"parallelism/context_parallel_load_balancer", "\"headtail\"",
            "each rank is counted with an equal share of the causal attention"},
    Ignored{"training/enable_loss_parallel", "true", "each rank computes the loss of its part of the logits",
            kMoreMemory},
    Ignored{"float8/emulate", "false", "GEMMs are counted in FP8"},
    Ignored{"float8/force_recompute_fp8_weight_in_bwd", "false",
            "FP8 weights are counted as kept for backward"},
    Ignored{"float8/precompute_float8_dynamic_scale_for_fsdp", "false",
            "the scale of each weight is counted as computed by itself"},
    Ignored{"float8/scaling_type_input", "\"dynamic\"",
            "scales are computed from the tensor that they scale"},
    Ignored{"float8/scaling_type_weight", "\"dynamic\"",
            "scales are computed from the tensor that they scale"},
    Ignored{"float8/scaling_type_grad_output", "\"dynamic\"",
            "scales are computed from the tensor that they scale"},
    Ignored{"mx/recipe_name", "\"mxfp8_cublas\"", "GEMMs are counted in MXFP8 by cuBLAS"},
    Ignored{"quantize/linear/mx/recipe_name", "\"mxfp8_cublas\"", "GEMMs are counted in MXFP8 by cuBLAS"},
    Ignored{"mx/use_fp8_dim1_cast_triton_kernel", "true", "the profile's cast kernel is counted"},
    Ignored{"mx/filter_fqns", R"(["output"])", kConverted},
    Ignored{"quantize/linear/mx/filter_fqns", R"(["output"])", kConverted},
    Ignored{"quantize/linear/mx/mxfp8_dim1_cast_kernel_choice", "\"triton\"",
            "the profile's cast kernel is counted"},
    Ignored{"quantize/linear/float8/emulate", "false", "GEMMs are counted in FP8"},
    Ignored{"quantize/linear/float8/precompute_float8_dynamic_scale_for_fsdp", "false",
            "the scale of each weight is counted as computed by itself"}};

std::vector<std::string> words_of(const char* text) {
  std::vector<std::string> words;
  std::istringstream from{std::string(text)};
  for (std::string word; from >> word;) words.push_back(word);
  return words;
}

// Those below a section, and its keys.
std::vector<std::string> names_in(const std::string& section) {
  std::set<std::string> names;
  const std::string before = section.empty() ? "" : section + ".";
  for (const Section& each : kSections) {
    const std::string name = each.name;
    if (name == section)
      for (std::string& key : words_of(each.keys)) names.insert(std::move(key));
    else if (name.starts_with(before))
      names.insert(name.substr(before.size(), name.find('.', before.size()) - before.size()));
  }
  return {names.begin(), names.end()};
}

bool is_free(const std::string& name) {
  return std::ranges::any_of(kFree, [&](const char* each) { return name == each; });
}

// A key like a known one is misspelt. Another is a fork's own, which is noted; and so is one of a section
// that costs nothing, or like a key that does.
void add_misspelt(const Json& table, const std::string& section, const std::string& file,
                  std::vector<Violation>& violations) {
  const std::vector<std::string> names = names_in(section);
  for (const auto& [key, value] : table.items()) {
    const std::string path = section.empty() ? key : section + "." + key;
    if (std::ranges::count(names, key) > 0) {
      if (value.is_object() && !names_in(path).empty()) add_misspelt(value, path, file, violations);
      continue;
    }
    const std::vector<std::string> near = similar_names(key, names, 1);
    if (near.empty() || is_free(section) || is_free(section + "." + near.front())) continue;
    std::string pointer = "/" + path;
    std::ranges::replace(pointer, '.', '/');
    violations.push_back(
        {file, pointer,
         fmt::format("is not a {} of torchtitan (up to v0.2.2)", section.empty() ? "section" : "key"),
         fmt::format("found {}", key), near.front()});
  }
}

void list_table(const Json& table, const std::string& section, Imported& imported,
                std::vector<std::string>& unknown) {
  const std::vector<std::string> names = names_in(section);
  for (const auto& [key, value] : table.items()) {
    const std::string path = section.empty() ? key : section + "." + key;
    if (value.is_object() && (section.empty() || !names_in(path).empty())) {
      list_table(value, path, imported, unknown);
      continue;
    }
    const bool is_known = !section.empty() && std::ranges::count(names, key) > 0;
    const OptionFate fate = !is_known                           ? OptionFate::unknown
                            : is_free(section) || is_free(path) ? OptionFate::free
                                                                : OptionFate::used;
    if (fate == OptionFate::unknown) unknown.push_back(path);
    std::string name = path;
    std::ranges::replace(name, '.', '/');
    imported.options.push_back({name, value.is_object() ? "" : value.dump(), "", fate, "", ""});
  }
}

}  // namespace

JsonReader with_one_parallelism(const JsonReader& config) {
  Json json = config.json();
  if (json.contains("training") && json["training"].is_object() &&
      json["training"].contains("data_parallel_degree") &&
      !json["training"].contains("data_parallel_shard_degree"))  // to August 2024
    json["training"]["data_parallel_shard_degree"] = json["training"]["data_parallel_degree"];
  if (json.contains("parallelism") && !json["parallelism"].is_object()) return config;
  for (const char* section : {"training", "experimental"})
    for (const char* key :
         {"data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
          "fsdp_reshard_after_forward", "disable_loss_parallel", "pipeline_parallel_degree",
          "pipeline_parallel_schedule", "pipeline_parallel_schedule_csv", "pipeline_parallel_split_points",
          "context_parallel_degree", "context_parallel_rotate_method", "enable_async_tensor_parallel"}) {
      if (!json.contains(section) || !json[section].is_object() || !json[section].contains(key)) continue;
      if (json.contains("parallelism") && json["parallelism"].contains(key)) continue;
      json["parallelism"][key] = json[section][key];
    }
  return JsonReader(std::move(json), config.file());
}

void list_torchtitan_options(const Json& config, Imported& imported) {
  std::vector<std::string> unknown;
  list_table(config, "", imported, unknown);
  if (!unknown.empty())
    imported.notes.push_back(fmt::format(
        "{} unknown to torchtitan, ignored with unknown effect: {}",
        unknown.size() == 1 ? "1 key is" : fmt::format("{} keys are", unknown.size()), join(unknown)));
}

bool is_torchtitan_key(const std::string& section, const std::string& key) {
  return std::ranges::count(names_in(section), key) > 0;
}

bool is_torchtitan_free(const std::string& section, const std::string& key) {
  return is_free(section) || is_free(section + "." + key);
}

void note_ignored_of_torchtitan(const Json& config, Imported& imported) {
  for (const Ignored& each : kIgnored) {
    const Json::json_pointer key(std::string("/") + each.key);
    if (!config.contains(key)) continue;
    const Json& value = config[key];
    const Json counted = Json::parse(each.counted);
    const bool may_be_empty = counted.is_string() || counted.is_array();
    const bool is_empty =
        value.is_null() || (may_be_empty && (value == "" || (value.is_array() && value.empty())));
    if (value == counted || is_empty) continue;
    imported.notes.push_back(fmt::format("\"{}\" is ignored: {}", each.key, each.effect));
    omit(imported, each.key, each.effect, each.changes);
  }
}

void require_torchtitan_keys(const Json& config, const std::string& file) {
  std::vector<Violation> violations;
  add_misspelt(config, "", file, violations);
  if (!violations.empty()) throw InputError(std::move(violations));
}

}  // namespace rehearse
