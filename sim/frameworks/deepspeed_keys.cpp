#include "frameworks/deepspeed_keys.h"

#include <algorithm>
#include <string_view>

namespace rehearse {

namespace {

// Sections and values without effect on the time and memory of a step.
constexpr const char* kCostless[] = {"scheduler",
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
                                     "gradient_allreduce_op",
                                     "nebula",
                                     "datastates",
                                     "timers",
                                     "dataloader_drop_last",
                                     "log_level",
                                     "vocabulary_size",
                                     "managed_gradient_accumulation"};

// Unsupported keys that change the cost.
constexpr UnmodelledKey kUnmodelled[] = {
    {"sparse_gradients", "gradients are reduced as dense tensors"},
    {"amp", "no mixed precision of apex is counted: pass --precision", "less memory, less time"},
    {"graph_harvesting", "kernels are launched one by one"},
    {"weight_quantization", "weights are counted in the precision of training", "less memory, more time"},
    {"use_data_before_expert_parallelism", "expert-parallel ranks are counted next to each other"},
    {"seq_parallel_communication_data_type", "exchanges of heads have the precision of training"},
    {"sparse_attention", "full attention is counted", "less time"},
    {"data_efficiency", "every sequence has its full length", "less time"},
    {"curriculum_learning", "every sequence has its full length", "less time"},
    {"compression_training", "uncompressed weights and activations are counted", "less memory, more time"},
    {"autotuning", "the values of the file are used", "less time"},
    {"aio", "nothing is read from NVMe"},
    {"progressive_layer_drop", "every layer is counted", "less time"},
    {"eigenvalue", "its time is not counted", "more time"},
    {"expert_parallel", "pass --ep to split experts", "less memory, less time, more time"},
    {"elasticity", "the batch of the file is used"},
    {"hybrid_engine", "only training is counted", "more memory, more time"},
    {"compile", "the kernel times of the profile are used", "less time"},
    {"disable_allgather", "parameters are gathered, not broadcast by each rank"},
    {"fp32_allreduce", "gradients are reduced in the training precision; pass --grad-reduce fp32"}};
constexpr const char* kCostlessOfZero[] = {"round_robin_gradients",
                                           "load_from_fp32_weights",
                                           "elastic_checkpoint",
                                           "stage3_gather_16bit_weights_on_model_save",
                                           "stage3_gather_fp16_weights_on_model_save",
                                           "ignore_unused_parameters",
                                           "gather_16bit_weights_on_model_save",
                                           "pipeline_loading_checkpoint",
                                           "enable_sanity_checks",
                                           "log_trace_cache_warnings",
                                           "override_module_apply"};
// DeepSpeed takes a field by its alias and by its own name (deepspeed/runtime/zero/config.py, pydantic).
constexpr const char* kPrefetched = "one layer is prefetched";
constexpr const char* kHeld = "the parameters of a layer are released after each pass";
constexpr const char* kAllDivided = "all parameters are sharded";
constexpr const char* kWholeOnWire = "gathers and reductions have the training precision";
constexpr UnmodelledKey kUnmodelledOfZero[] = {
    {"sub_group_size", "one optimizer step over all parameters is counted"},
    {"allgather_bucket_size", "parameters are gathered in buckets of reduce_bucket_size"},
    {"stage3_prefetch_bucket_size", kPrefetched},
    {"prefetch_bucket_size", kPrefetched},
    {"stage3_param_persistence_threshold", kAllDivided},
    {"param_persistence_threshold", kAllDivided},
    {"stage3_model_persistence_threshold", kAllDivided},
    {"model_persistence_threshold", kAllDivided},
    {"stage3_max_live_parameters", kHeld},
    {"max_live_parameters", kHeld},
    {"stage3_max_reuse_distance", kHeld},
    {"max_reuse_distance", kHeld},
    {"stage3_use_all_reduce_for_fetch_params", "parameters are gathered by all-gather"},
    {"use_all_reduce_for_fetch_params", "parameters are gathered by all-gather"},
    {"stage3_allgather_sequential", "the parameters of a layer are gathered together"},
    {"allgather_sequential", "the parameters of a layer are gathered together"},
    {"zero_quantized_weights", kWholeOnWire, "less time"},
    {"zero_quantized_gradients", kWholeOnWire, "less time"},
    {"zero_quantized_nontrainable_weights", kWholeOnWire},
    {"zeropp_loco_param", kWholeOnWire},
    {"mics_hierarchical_params_gather", "parameters are gathered in one step"},
    {"cpu_offload_params", "parameters are counted on the GPU", "less memory, more time"},
    {"cpu_offload_param", "parameters are counted on the GPU", "less memory, more time"},
    {"cpu_offload_use_pin_memory", "copies have the rate of pinned memory"},
    {"zenflow", "the host steps after every iteration", "less time"},
    {"save_muon_momentum_buffer_in_memory", "Adam's state is counted"},
    {"leaf_module", "every layer is gathered separately"},
    {"contiguous_gradients", "gradients are counted in one buffer", "", true},
    {"reduce_scatter", "gradients are reduced and scattered, not reduced whole", "", true},
    {"allgather_partitions", "parameters are gathered, not broadcast by each rank", "", true},
    {"memory_efficient_linear", "inputs of linear layers are kept once", "", true},
    {"stage3_module_granularity_threshold", "every layer is gathered separately"},
    {"module_granularity_threshold", "every layer is gathered separately"},
    {"legacy_stage1", "ZeRO-1 of today is counted"},
    {"use_multi_rank_bucket_allreduce", "a bucket is reduced in one message"}};

}  // namespace

std::span<const char* const> deepspeed_free_keys() {
  return kCostless;
}
std::span<const char* const> zero_free_keys() {
  return kCostlessOfZero;
}
std::span<const UnmodelledKey> deepspeed_unmodelled() {
  return kUnmodelled;
}
std::span<const UnmodelledKey> zero_unmodelled() {
  return kUnmodelledOfZero;
}

bool is_free_of_deepspeed(const std::string& path) {
  constexpr std::string_view kZero = "zero_optimization/";
  const auto among = [](std::span<const char* const> list, const std::string& key) {
    return std::ranges::any_of(list, [&](const char* each) { return key == each; });
  };
  return path.starts_with(kZero) ? among(kCostlessOfZero, path.substr(kZero.size())) : among(kCostless, path);
}

}  // namespace rehearse
