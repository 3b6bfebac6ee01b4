#include <fmt/core.h>

#include "frameworks/imported.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMostBatch = std::int64_t{1} << 40;
constexpr double kMostBucket = 1e18;  // elements, above those of any model

// Sections and values that leave time and memory of a step as they are.
constexpr const char* kCostless[] = {"optimizer",
                                     "scheduler",
                                     "steps_per_print",
                                     "wall_clock_breakdown",
                                     "dump_state",
                                     "zero_allow_untested_optimizer",
                                     "zero_force_ds_cpu_optimizer",
                                     "prescale_gradients",
                                     "gradient_predivide_factor",
                                     "tensorboard",
                                     "wandb",
                                     "csv_monitor",
                                     "comms_logger",
                                     "flops_profiler",
                                     "checkpoint",
                                     "memory_breakdown",
                                     "seed",
                                     "disable_allgather",
                                     "data_types"};

// What changes the cost and has no counterpart here.
constexpr const char* kUnmodelled[] = {"sparse_gradients",
                                       "amp",
                                       "sparse_attention",
                                       "data_efficiency",
                                       "curriculum_learning",
                                       "compression_training",
                                       "autotuning",
                                       "aio",
                                       "progressive_layer_drop",
                                       "eigenvalue",
                                       "expert_parallel",
                                       "elasticity",
                                       "hybrid_engine",
                                       "compile",
                                       "fp32_allreduce"};
constexpr const char* kCostlessOfZero[] = {"contiguous_gradients",
                                           "round_robin_gradients",
                                           "load_from_fp32_weights",
                                           "elastic_checkpoint",
                                           "stage3_gather_16bit_weights_on_model_save",
                                           "stage3_gather_fp16_weights_on_model_save",
                                           "ignore_unused_parameters",
                                           "legacy_stage1",
                                           "stage3_module_granularity_threshold",
                                           "log_trace_cache_warnings",
                                           "reduce_scatter",
                                           "allgather_partitions",
                                           "memory_efficient_linear",
                                           "override_module_apply"};
constexpr const char* kUnmodelledOfZero[] = {"sub_group_size",
                                             "allgather_bucket_size",
                                             "stage3_prefetch_bucket_size",
                                             "stage3_param_persistence_threshold",
                                             "stage3_max_live_parameters",
                                             "stage3_max_reuse_distance",
                                             "offload_param",
                                             "zero_quantized_weights",
                                             "zero_quantized_gradients",
                                             "zero_quantized_nontrainable_weights",
                                             "zeropp_loco_param",
                                             "cpu_offload_params",
                                             "cpu_offload_use_pin_memory",
                                             "leaf_module",
                                             "use_multi_rank_bucket_allreduce",
                                             "param_persistence_threshold",
                                             "model_persistence_threshold"};

class DeepSpeedReader {
 public:
  DeepSpeedReader(const JsonReader& config, int gpus) : config_(config), gpus_(gpus) {}

  Imported read() {
    imported_.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + config_.file()}};
    if (gpus_ > 0) imported_.scenario["gpus"] = gpus_;
    plan_ = {{"framework", "deepspeed"}, {"precision", "fp32"}};
    precision();
    if (said("gradient_clipping", config_))
      plan_["clip_grad"] = config_.number("gradient_clipping", 0, kMostClipGrad);
    degrees();
    if (said("zero_optimization", config_)) zero(config_.object("zero_optimization"));
    batch();
    checkpointing();
    for (const char* key : kCostless) config_.has(key);
    for (const char* key : kUnmodelled)
      if (config_.has(key)) note(fmt::format("\"{}\" is not modelled", key));
    config_.reject_unknown();
    imported_.scenario["plan"] = plan_;
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  // Present, and not "auto", which leaves the value to the launcher and therefore to our defaults.
  bool said(const char* key, const JsonReader& reader) {
    if (!reader.has(key)) return false;
    if (reader.value(key) != Json("auto")) return true;
    note(fmt::format("\"{}\" is auto: left to defaults and flags", key));
    return false;
  }

  bool enabled(const char* section) {
    return config_.has(section) && said("enabled", config_.object(section)) &&
           config_.object(section).boolean_or("enabled", false);
  }

  void precision() {
    if (enabled("fp16")) plan_["precision"] = "fp16";
    if (enabled("bf16") || enabled("bfloat16")) plan_["precision"] = "bf16";
    const bool auto_only = plan_["precision"] == "fp32" && (config_.has("bf16") || config_.has("fp16"));
    if (auto_only && !imported_.notes.empty()) plan_.erase("precision");
    if (said("communication_data_type", config_)) {
      const std::string type = config_.text("communication_data_type");
      if (type == "fp32" || type == "fp16")
        plan_["grad_reduce"] = type;
      else
        plan_["grad_reduce"] = "bf16";
    }
  }

  void degrees() {
    if (config_.has("pipeline")) {
      const JsonReader pipeline = config_.object("pipeline");
      if (said("stages", pipeline)) plan_["pp"] = pipeline.integer("stages", 1, 1 << 20);
      plan_["schedule"] = "1f1b";
    }
    if (!config_.has("tensor_parallel")) return;
    const JsonReader tensor = config_.object("tensor_parallel");
    if (said("autotp_size", tensor)) plan_["tp"] = tensor.integer("autotp_size", 1, 1 << 20);
    if (tensor.boolean_or("tp_overlap_comm", false)) note("\"tp_overlap_comm\" is not modelled");
  }

  void zero(const JsonReader& zero) {
    const std::int64_t stage = said("stage", zero) ? zero.integer("stage", 0, 3) : 0;
    plan_["zero"] = stage;
    plan_["overlap_grad_reduce"] =
        said("overlap_comm", zero) ? zero.boolean_or("overlap_comm", false) : stage == 3;
    if (said("reduce_bucket_size", zero)) {
      const double elements = zero.number("reduce_bucket_size", 0, kMostBucket);
      const std::string wire = plan_.value("grad_reduce", plan_.value("precision", "bf16"));
      const double bytes = elements * (wire == "fp32" ? 4 : 2);
      if (bytes >= 1) plan_["bucket"] = fmt::format("{:.0f}B", bytes);
    }
    const std::int64_t secondary = zero.integer_or("zero_hpz_partition_size", 1, 1, 1 << 20);
    if (secondary > 1) note("\"zero_hpz_partition_size\" is not modelled: every gather spans all ranks");
    const std::int64_t mics = zero.integer_or("mics_shard_size", -1, -1, 1 << 20);
    if (mics > 0) plan_["zero_shard"] = mics;
    const bool older = zero.boolean_or("cpu_offload", false);
    if (older || (said("offload_optimizer", zero) && is_offloaded(zero.object("offload_optimizer"))))
      plan_["offload"] = "optimizer";
    for (const char* key : kCostlessOfZero) zero.has(key);
    for (const char* key : kUnmodelledOfZero)
      if (zero.has(key)) note(fmt::format("\"zero_optimization/{}\" is not modelled", key));
    zero.reject_unknown();
  }

  static bool is_offloaded(const JsonReader& offload) { return offload.text_or("device", "none") != "none"; }

  std::int64_t batch_value(const char* key) {
    return said(key, config_) ? config_.integer(key, 1, kMostBatch) : 0;
  }

  // train_batch_size = micro batch x accumulation x data-parallel ranks; two of the three suffice.
  void batch() {
    const std::int64_t all = batch_value("train_batch_size"),
                       steps = batch_value("gradient_accumulation_steps");
    std::int64_t micro = batch_value("train_micro_batch_size_per_gpu");
    const std::int64_t parts = plan_.value("pp", std::int64_t{1}) * plan_.value("tp", std::int64_t{1});
    const std::int64_t replicas = gpus_ > 0 ? std::max<std::int64_t>(1, gpus_ / parts) : 0;
    if (micro == 0 && all > 0 && steps > 0 && replicas > 0) micro = all / (steps * replicas);
    if (micro > 0) plan_["micro_batch"] = micro;
    if (all > 0) plan_["global_batch"] = all;
    if (all == 0 && micro > 0 && replicas > 0)
      plan_["global_batch"] = micro * std::max<std::int64_t>(1, steps) * replicas;
    const bool whole = all > 0 && micro > 0 && steps > 0 && replicas > 0;
    if (whole && all != micro * steps * replicas)
      config_.fail("train_batch_size", "must be micro batch x gradient accumulation x data-parallel ranks",
                   fmt::format("{} and {} x {} x {}", all, micro, steps, replicas),
                   std::to_string(micro * steps * replicas));
  }

  void checkpointing() {
    if (!config_.has("activation_checkpointing")) return;
    const JsonReader section = config_.object("activation_checkpointing");
    for (const char* key : {"partition_activations", "cpu_checkpointing"})
      if (section.boolean_or(key, false))
        note(fmt::format("\"activation_checkpointing/{}\" is not modelled", key));
    note(
        "\"activation_checkpointing\" sets how, not whether, the model recomputes: say --recompute full "
        "where it does");
  }

  const JsonReader& config_;
  int gpus_;
  Imported imported_;
  Json plan_;
};

}  // namespace

Imported import_deepspeed(const JsonReader& config, int gpus) {
  return DeepSpeedReader(config, gpus).read();
}

}  // namespace rehearse
