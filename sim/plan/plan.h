// How is the training run split: parallel degrees, batch, schedule, recompute, kernels, state?
// Each field is described once, in plan/fields.h. Groups are compared as wholes (search/family.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "plan/options.h"
#include "plan/rules/broken_rule.h"

namespace rehearse {

// Placement of the model's parts on ranks.
struct ParallelOptions {
  int tp = 1;   // tensor parallel
  int cp = 1;   // context parallel
  int ep = 1;   // expert parallel
  int etp = 1;  // tensor parallel inside an expert
  int dp = 1;   // data-parallel replicas
  int pp = 1;   // pipeline parallel
  int vpp = 1;  // virtual stages (model chunks) of a pipeline rank
  std::array<Axis, 5> order = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};  // leftmost varies fastest
  std::vector<int> layers_per_stage;                                               // empty: split evenly

  bool operator==(const ParallelOptions&) const = default;
};

struct BatchOptions {
  std::int64_t micro_batch = 1;   // sequences
  std::int64_t global_batch = 1;  // sequences
  std::int64_t seq = 2048;        // tokens of a sequence
  std::int64_t images = 0;        // images of a sequence, for the model's tower; 0: the step has no tower
  std::int64_t image_tokens = 0;  // tokens that one image takes in a sequence; 0: from the model's file
  // The tower's parameters, or those of the projector behind it, are held but not trained.
  bool freeze_tower = false, freeze_projector = false;

  bool operator==(const BatchOptions&) const = default;
};

// Order of a pipeline rank's passes.
struct OrderOptions {
  ScheduleName schedule = ScheduleName::one_f_one_b;
  int microbatch_group = 0;  // interleaving: microbatches of a model chunk before the next chunk; 0: pp

  bool operator==(const OrderOptions&) const = default;
};

struct RecomputeOptions {
  Recompute recompute = Recompute::none;
  RecomputeMethod recompute_method = RecomputeMethod::uniform;
  std::int64_t recompute_layers = 1;  // full: layers of a group (uniform), or first layers of a stage (block)
  std::vector<RecomputeModule> recompute_modules = {RecomputeModule::core_attn};  // with selective recompute
  bool recompute_early_stop = false;  // full: ends with the last tensor that the backward pass reads

  bool operator==(const RecomputeOptions&) const = default;
};

// Precision of tensors in compute, in memory and in communication.
struct NumericsOptions {
  Recipe recipe = Recipe::megatron;
  Precision precision = Precision::bf16;
  int fp8_weight_copies = 2;  // weights in fp8: stored by rows and by columns, or once
  Fp8Scaling fp8_scaling = Fp8Scaling::tensor;
  bool fp8_either_layout = false;  // the GPU's GEMMs take tensor-scaled operands in any layout
  bool fp8_output_proj = false;    // the head's GEMM is in fp8 like those of layers (Megatron core)
  // Layers of fp8 and fp4 plans that compute in bf16.
  std::int64_t bf16_first_layers = 0, bf16_last_layers = 0;
  // Megatron core's fp8_dot_product_attention: the two GEMMs of attention are in fp8 too.
  bool fp8_attention = false;
  Precision grad_reduce = Precision::fp32;  // precision of gradients in communication

  bool operator==(const NumericsOptions&) const = default;
};

// Fusion of operations into kernels, and overlap of a layer's collectives.
struct KernelOptions {
  bool sequence_parallel = false;
  bool fused_attention = true;  // FlashAttention: scores never reach memory
  // Unfused attention: Megatron-LM's masked_softmax_fusion; else a kernel per operation.
  bool fused_softmax = true;
  bool fused_cross_entropy = true;  // Megatron-LM's --cross-entropy-loss-fusion; else a kernel per operation
  LossFusion loss_fusion = LossFusion::native;  // with fused_cross_entropy
  int train_metrics = 0;   // metrics from each microbatch's logits after its backward (Composer)
  bool fused_norm = true;  // RMSNorm in one kernel per pass; else a kernel per operation, as in eager PyTorch
  bool fused_rotary = true;      // Megatron-LM's apply_rope_fusion; else a kernel per operation
  bool fused_activation = true;  // Megatron-LM's bias_swiglu_fusion; else a kernel per operation
  // Megatron-LM's gradient_accumulation_fusion: GEMMs of weight gradients add to the gradients of earlier
  // microbatches. Else autograd adds them.
  bool fused_accumulation = true;
  bool fused_adam = true;  // one kernel per step; else a kernel per operation, as in eager PyTorch
  bool fused_step = true;  // Adam copies, unscales and clips too; else separate passes do
  // Without sequence parallelism, each tensor-parallel rank sends its part of an activation to the next
  // stage, which gathers the parts.
  bool scatter_gather = false;
  ContextExchange cp_exchange = ContextExchange::ring;
  bool tp_comm_overlap = false;  // collectives and their GEMMs run in chunks, concurrently
  // SM margin of the forward GEMM of attention's projection, and of the MLP's second layer, for its
  // reduce-scatter (Transformer Engine's num_sm with set_sm_margin); 0: none.
  int tp_comm_proj_sms = 0;
  int tp_comm_fc2_sms = 0;
  bool tp_backward_overlap =
      true;  // a collective of one half of the backward pass overlaps a GEMM of the other

  bool operator==(const KernelOptions&) const = default;
};

// Overlap of the schedule's messages with compute.
struct OverlapOptions {
  bool overlap_grad_reduce = true;    // the bucketed gradient all-reduce overlaps the backward pass
  bool overlap_param_gather = false;  // ZeRO-1, 2: parameter gathers overlap the next iteration's forwards
  bool overlap_p2p = false;           // pipeline messages overlap compute; else compute waits for them
  double bucket_bytes = 160e6;        // gradient bucket: Megatron-LM's 40 M parameters of fp32

  bool operator==(const OverlapOptions&) const = default;
};

// State that data-parallel ranks divide, and the times at which they communicate it (plan/sharding.h).
struct ShardingOptions {
  int zero = 0;        // 1: optimizer state; 2: gradients too; 3: parameters too
  int zero_shard = 0;  // ranks that divide the state; groups of them are replicas; 0: all of dp
  bool reshard_after_forward = true;   // ZeRO-3: gather parameters again for the backward
  bool reduce_each_microbatch = true;  // ZeRO-2, 3: else gradients stay whole until the last microbatch
  int prefetch = 1;                    // ZeRO-3: layers gathered ahead of the layer that computes

  bool operator==(const ShardingOptions&) const = default;
};

// The optimizer step, and state in host memory.
struct StepOptions {
  bool sync_step = true;  // ranks step together (gradient norm, overflow); else each on its own
  double clip_grad = 0;   // gradients are scaled down to this norm over all parameters; 0: no clipping
  Offload offload = Offload::none;

  bool operator==(const StepOptions&) const = default;
};

struct ExpertOptions {
  bool fused_permute = true;   // Megatron-LM's moe_permute_fusion; else scatter_add_ adds up rows
  bool fused_router = true;    // Megatron-LM's moe_router_fusion; else a kernel per operation
  bool fused_experts = false;  // activation and casts inside experts' GEMMs (plan/work/grouped.h)
  double moe_imbalance = 1;    // rows that the busiest rank's experts receive, relative to an even share
  double moe_capacity = 0;     // experts padded to this multiple of an even share; 0: dropless
  // Minor version of the Megatron core that runs the experts; 0: current.
  // - Before 10 (v0.10), ep is carved out of dp alone.
  // - From 10 to 12, an unfused permutation picks rows by a mask.
  // - Up to 12, rows are weighted after their return; later, together with the activation.
  int core_release = 0;
  bool overlap_experts = false;  // dispatch and combine overlap another microbatch's pass
  Dispatcher dispatcher = Dispatcher::all_to_all;
  int dispatcher_sms = 0;  // multiprocessors that DeepEP or HybridEP runs on; 0: the library's choice

  bool operator==(const ExpertOptions&) const = default;
};

// Kernel launches by the host.
struct LaunchOptions {
  bool cuda_graph = false;                      // passes are launched at once: no kernel waits for the host
  std::vector<GraphModule> cuda_graph_modules;  // only these of each layer; empty: whole passes
  bool one_queue = false;        // all streams share one queue: each op runs after the one launched before
  bool launch_blocking = false;  // CUDA_LAUNCH_BLOCKING=1: the host waits for each kernel

  bool operator==(const LaunchOptions&) const = default;
};

struct Plan : ParallelOptions,
              BatchOptions,
              OrderOptions,
              RecomputeOptions,
              NumericsOptions,
              KernelOptions,
              OverlapOptions,
              ShardingOptions,
              StepOptions,
              ExpertOptions,
              LaunchOptions {
  Framework framework = Framework::megatron_core;

  int gpus() const { return tp * cp * dp * pp; }
  int stages() const { return pp * vpp; }
  int edp() const { return tp * cp * dp / (ep * etp); }  // replicas of an expert
  // Does a message between stages carry only one tensor-parallel rank's part of activations that all its
  // ranks hold whole?
  bool sends_parts() const { return scatter_gather && tp > 1 && pp > 1 && !sequence_parallel; }
  bool experts_within_dp() const { return core_release > 0 && core_release < 10; }
  bool picks_rows_by_mask() const { return !fused_permute && core_release >= 10 && core_release < 13; }
  bool weights_rows_at_home() const { return core_release > 0 && core_release < 13; }
  bool pairs_passes() const { return overlap_experts && ep > 1; }
  bool sends_rows_once() const { return dispatcher != Dispatcher::all_to_all && ep > 1; }
  double expert_load() const { return moe_capacity > 0 ? moe_capacity : ep > 1 ? moe_imbalance : 1; }
  std::int64_t microbatches() const { return global_batch / (micro_batch * dp); }

  bool operator==(const Plan&) const = default;
};

// Every rule that this plan breaks for this model on this many GPUs, with remedies; empty when legal.
std::vector<BrokenRule> unmet_rules(const Plan& plan, const Model& model, std::int64_t gpus);

// The same rules as violations. Each has the nearest values that satisfy its rule, regardless of other rules.
// Violation::pointer is the field's name in Plan ("pp", "micro_batch", ...) or "gpus".
std::vector<Violation> broken_rules(const Plan& plan, const Model& model, std::int64_t gpus);

}  // namespace rehearse
