#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "frameworks/olmo_core_plan.h"

namespace rehearse {

namespace {

constexpr const char* kOfTrain = "train_module.";

// Keys of TransformerTrainModuleConfig and its parts (train/train_module/transformer/config.py), with the
// counted values.
constexpr std::array kIgnoredOfOlmoCore = {
    CountedKey{"z_loss_multiplier", "null", "the further loss over the logits is not counted"},
    CountedKey{"float8_config.modules_to_ignore", "null",
               "all linear layers but the output are counted in FP8", "more time"},
    CountedKey{"float8_config.ao.force_recompute_fp8_weight_in_bwd", "false",
               "FP8 weights are counted as kept for backward"},
    CountedKey{"cp_config.head_stride", "1", "keys and values of all heads are counted as sent at once"},
    CountedKey{"tp_config.enable_async", "false", "no overlap of tensor-parallel messages is counted"}};

}  // namespace

namespace {

// Both are an int of TransformerTrainModuleConfig without a default. No other type becomes one.
void require_tokens(const PythonSettings& found, PlanYaml& from) {
  for (const auto& [path, pointer] : {std::pair{"train_module.rank_microbatch_size", "/plan/micro_batch"},
                                      std::pair{"train_module.max_sequence_length", "/plan/seq"}}) {
    const Json* value = at_path(found.json, path);
    const auto is_of = [&](const OpenSetting& open) {
      return open.path == path || open.path == "train_module";
    };
    if (from.is_over(pointer) || std::ranges::any_of(found.open, is_of)) continue;
    if (value == nullptr || !value->is_number_integer())
      from.violations.push_back({from.file(), from.place(path), "must be an int, as OLMo-core declares it",
                                 value == nullptr ? "absent" : "found " + value->dump().substr(0, 60),
                                 fmt::format("{}=TOKENS", path)});
  }
}

}  // namespace

void require_known_of_olmo_core(const PythonSettings& found, const std::string& words, PlanYaml& from) {
  std::string parameters;
  for (const std::string& name : found.missing) parameters += fmt::format(" {}=VALUE", name);
  const std::string train = kOfTrain;
  for (const OpenSetting& open : found.open) {
    const std::string section = open.path.substr(0, open.path.find('.'));
    const bool is_free =
        open.path.starts_with(train + "optim.") || open.path.starts_with(train + "scheduler");
    const bool is_batch = open.path == "data_loader.global_batch_size" && !from.is_over("/plan/global_batch");
    if (!is_batch && (section != "train_module" || is_free)) {
      from.imported.notes.push_back(note_on_open(open));
      continue;
    }
    Violation violation = violation_of_open(open, from.file());
    violation.nearest =
        parameters.empty()
            ? fmt::format("rehearse import {} {}=VALUE; or {}", words, open.path, way_out_of_python())
            : fmt::format("rehearse import {}{}, of which the function makes it", words, parameters);
    from.violations.push_back(std::move(violation));
  }
  require_tokens(found, from);
  if (!from.violations.empty()) throw InputError(std::move(from.violations));
}

void ignore_of_olmo_core(PlanYaml& from) {
  from.ignore_unless(kIgnoredOfOlmoCore, kOfTrain);
}

std::set<std::string> free_of_olmo_core() {
  return keys_of(
      "trainer run_name init_seed backend load_path load_trainer_state "
      "data_loader.seed data_loader.num_workers data_loader.num_threads data_loader.prefetch_factor "
      "data_loader.work_dir data_loader.target_device_type data_loader.ignore_fingerprint_mismatch "
      "data_loader.tokenizer data_loader.sources "
      "model.dtype model.init_method model.init_seed model.init_std model.embedding_init_std "
      "model.embed_scale "
      "train_module.scheduler train_module.state_dict_save_opts train_module.state_dict_load_opts "
      "train_module.load_key_mapping train_module.label_ignore_index "
      "train_module.ac_config.determinism_check "
      "train_module.optim.lr train_module.optim.betas train_module.optim.eps train_module.optim.weight_decay "
      "train_module.optim.group_overrides train_module.optim.fixed_fields "
      "train_module.optim.rolling_interval_length train_module.optim.sigma_factor "
      "train_module.optim.step_increment_bugfix train_module.float8_config.ao.round_scales_to_power_of_2");
}

}  // namespace rehearse
