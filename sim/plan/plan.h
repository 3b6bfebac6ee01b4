// How the training run is split: parallel degrees, batch, schedule, recompute, and the rules they must obey.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "plan/broken_rule.h"

namespace rehearse {

enum class Axis : std::uint8_t { tp, cp, ep, dp, pp };
enum class Recompute : std::uint8_t {
  none,
  selective,  // the modules of recompute_modules
  op,         // all but attention, what was scattered, and every second product (plan/work/recompute.h)
  full
};
inline constexpr std::array kRecomputes = {Recompute::none, Recompute::selective, Recompute::op,
                                           Recompute::full};
enum class Precision : std::uint8_t { bf16, fp16, fp8, fp4, fp32 };
inline constexpr std::array kPrecisions = {Precision::bf16, Precision::fp16, Precision::fp8, Precision::fp4,
                                           Precision::fp32};
// Whether linear layers multiply what was quantised into it, and all else is of 16 bits. fp4 is NVFP4.
constexpr bool is_quantised(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp4;
}
// Megatron-LM's --recompute-method: full recompute keeps the input of every group of layers, or recomputes
// the first layers of each stage and keeps the others whole.
enum class RecomputeMethod : std::uint8_t { uniform, block };

// Megatron-LM's --recompute-modules: what selective recompute runs again.
enum class RecomputeModule : std::uint8_t {
  core_attn,       // all between q, k, v and the output projection
  mla_up_proj,     // latent attention: norms of the latents, up projections, rotary
  layernorm,       // both norms of a layer
  mlp,             // of dense layers
  moe,             // all of a sparse layer's experts, their exchanges included
  moe_act,         // the activation inside an expert
  shared_experts,  // of sparse layers
};
inline constexpr std::array kRecomputeModules = {RecomputeModule::core_attn,     RecomputeModule::mla_up_proj,
                                                 RecomputeModule::layernorm,     RecomputeModule::mlp,
                                                 RecomputeModule::moe,           RecomputeModule::moe_act,
                                                 RecomputeModule::shared_experts};

// What training keeps for each parameter (plan/recipe.h).
enum class Recipe : std::uint8_t {
  megatron,
  zero,
  sagemaker,
  deepspeed_bf16,
  nanotron,
  fsdp,
  autocast,
  bf16,
  fp8_weights
};

// What has a scale of its own among fp8 operands.
enum class Fp8Scaling : std::uint8_t {
  tensor,  // each tensor: of earlier steps' maxima (Transformer Engine, delayed), or its own (torchao)
  tensor_gathered,  // the same, of weights that FSDP gathers in fp8 (torchao, enable_fsdp_float8_all_gather)
  row,              // each row of an operand (torchao)
  current,          // each tensor, of its own maximum (Transformer Engine; Megatron-LM's tensorwise)
  mx                // 32 elements each (MXFP8; Transformer Engine)
};
inline constexpr std::array kFp8Scalings = {Fp8Scaling::tensor, Fp8Scaling::tensor_gathered, Fp8Scaling::row,
                                            Fp8Scaling::current, Fp8Scaling::mx};

// Whose kernels fuse the loss under Megatron core (--cross-entropy-fusion-impl).
enum class LossFusion : std::uint8_t {
  native,      // Megatron core's own, compiled by PyTorch
  te,          // Transformer Engine's, which makes the gradient with the loss, in fp32
  te_in_place  // before its release 2.18: in the precision of the logits, in their place
};
inline constexpr std::array kLossFusions = {LossFusion::native, LossFusion::te, LossFusion::te_in_place};

// How ranks of one context-parallel group meet the keys and values of the others.
enum class ContextExchange : std::uint8_t {
  ring,       // p2p: keys and values travel from rank to rank behind the attention (Liu et al. 2023)
  gather,     // allgather: every rank gathers all keys and values (Llama 3, section 3.3.2)
  all_to_all  // a2a: sequence split becomes head split and back (Jacobs et al. 2023, Ulysses)
};
// What takes rows to their experts and back: Megatron-LM's --moe-token-dispatcher-type alltoall, or flex with
// a backend. NCCL moves a row once for each expert, the others (plan/fanout.h) once to each rank and node.
enum class Dispatcher : std::uint8_t { all_to_all, deepep, hybridep };
inline constexpr std::array kDispatchers = {Dispatcher::all_to_all, Dispatcher::deepep, Dispatcher::hybridep};

// Megatron core's --cuda-graph-modules: what a pass launches of a layer at once, as one graph
// (plan/graphs.h).
enum class GraphModule : std::uint8_t {
  attn,           // attention, its norm and its residual
  mamba,          // the same of a state space
  mlp,            // the same of a dense layer's MLP
  moe,            // the same of a sparse layer's experts
  moe_router,     // of a sparse layer the norm, the router and the shared experts
  moe_preprocess  // of a sparse layer what readies its rows for their exchange
};
inline constexpr std::array kGraphModules = {GraphModule::attn,       GraphModule::mamba,
                                             GraphModule::mlp,        GraphModule::moe,
                                             GraphModule::moe_router, GraphModule::moe_preprocess};

enum class Offload : std::uint8_t { none, optimizer, activations };
enum class Framework : std::uint8_t {
  megatron_2021,
  megatron_core,
  deepspeed_2021,
  deepspeed,
  fsdp1,
  fsdp,
  torchtitan,
  nanotron,
  internevo,
  aleph_scaling
};
enum class ScheduleName : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  zb_h1,
  zb_h2,
  zb_v,
  dualpipe_v,
  v_half,
  v_min
};
inline constexpr std::array kScheduleNames = {
    ScheduleName::gpipe,      ScheduleName::one_f_one_b, ScheduleName::interleaved,
    ScheduleName::zb_h1,      ScheduleName::zb_h2,       ScheduleName::zb_v,
    ScheduleName::dualpipe_v, ScheduleName::v_half,      ScheduleName::v_min};

std::string to_string(Axis axis);
std::string to_string(Recompute recompute);
std::string to_string(RecomputeMethod method);
std::string to_string(RecomputeModule module);
std::string to_string(Recipe recipe);
std::string to_string(Precision precision);
std::string to_string(Fp8Scaling scaling);
std::string to_string(LossFusion fusion);         // "native", "te", "te-in-place"
std::string to_string(ContextExchange exchange);  // "p2p", "allgather", "a2a"
std::string to_string(Dispatcher dispatcher);     // "alltoall", "deepep", "hybridep"
std::string to_string(GraphModule module);  // "attn", "mamba", "mlp", "moe", "moe_router", "moe_preprocess"
std::string to_string(Offload offload);
std::string to_string(Framework framework);    // "megatron-2021", "megatron-core", "deepspeed-2021", ...
std::string to_string(ScheduleName schedule);  // "gpipe", "1f1b", "interleaved-1f1b", "zb-h1", ...

// Two chunks a rank, the second on the way back: stage s < pp and stage 2 pp - 1 - s on rank s.
bool is_v_shaped(ScheduleName schedule);

bool is_fsdp(Framework framework);  // PyTorch's, of either generation

struct Plan {
  int tp = 1;                     // tensor parallel
  int cp = 1;                     // context parallel
  int ep = 1;                     // expert parallel
  int dp = 1;                     // data-parallel replicas
  int pp = 1;                     // pipeline parallel
  int vpp = 1;                    // model chunks of a pipeline rank
  std::int64_t micro_batch = 1;   // sequences
  std::int64_t global_batch = 1;  // sequences
  std::int64_t seq = 2048;        // tokens of a sequence
  ScheduleName schedule = ScheduleName::one_f_one_b;
  Recompute recompute = Recompute::none;
  RecomputeMethod recompute_method = RecomputeMethod::uniform;
  std::int64_t recompute_layers = 1;  // full: of a group (uniform), or the first ones of a stage (block)
  std::vector<RecomputeModule> recompute_modules = {RecomputeModule::core_attn};  // selective
  bool recompute_early_stop = false;  // full: ends with the last tensor that the backward pass asks for
  Recipe recipe = Recipe::megatron;
  Precision precision = Precision::bf16;
  int fp8_weight_copies = 2;  // where weights are held in fp8: by rows and by columns, or once
  Fp8Scaling fp8_scaling = Fp8Scaling::tensor;
  bool fp8_either_layout = false;  // of the GPU: its products take operands scaled by tensor as they lie
  bool sequence_parallel = false;
  bool fused_attention = true;      // FlashAttention: scores never reach memory
  bool fused_softmax = true;        // where they do: Megatron-LM's masked_softmax_fusion; else a kernel an
                                    // operation
  bool fused_cross_entropy = true;  // Megatron-LM's --cross-entropy-loss-fusion; else one kernel an operation
  LossFusion loss_fusion = LossFusion::native;  // where it is on
  int train_metrics = 0;         // computed from each microbatch's logits after its backward (Composer)
  bool fused_norm = true;        // RMSNorm in one kernel a pass; else a kernel an operation, as eager PyTorch
  bool fused_rotary = true;      // Megatron-LM's apply_rope_fusion; else a kernel an operation
  bool fused_activation = true;  // Megatron-LM's bias_swiglu_fusion; else a kernel an operation
  bool fused_permute = true;     // Megatron-LM's moe_permute_fusion; else rows are added up by scatter_add_
  bool fused_router = true;      // Megatron-LM's moe_router_fusion; else a kernel an operation
  bool fused_experts = false;    // activation and quantisation inside experts' products (plan/work/grouped.h)
  bool fp8_output_proj = false;  // the head multiplies in fp8 as the layers do (Megatron core)
  std::int64_t bf16_first_layers = 0, bf16_last_layers = 0;  // of fp8 and fp4 plans that multiply in bf16
  bool fp8_attention = false;       // its fp8_dot_product_attention: so do the two products of attention
  bool fused_accumulation = true;   // Megatron-LM's gradient_accumulation_fusion: weight gradients' products
                                    // add to those of earlier microbatches; else autograd does
  bool fused_adam = true;           // one kernel a step; else a kernel an operation, as eager PyTorch
  bool fused_step = true;           // Adam copies, unscales and clips too; else passes of their own do
  bool overlap_grad_reduce = true;  // bucketed gradient all-reduce beside the backward pass
  bool overlap_p2p = false;         // pipeline messages beside compute; else compute waits for them
  bool scatter_gather = false;  // without sequence parallelism each tensor-parallel rank sends its part of an
                                // activation to the next stage, where the parts are gathered
  bool cuda_graph = false;      // passes are launched at once: no kernel waits for the host
  std::vector<GraphModule> cuda_graph_modules;  // only these of each layer; empty: whole passes
  bool one_queue = false;        // all streams share one: each op runs after the one launched before
  bool launch_blocking = false;  // CUDA_LAUNCH_BLOCKING=1: the host waits for each kernel
  double bucket_bytes = 160e6;   // gradient bucket: Megatron-LM's 40 M parameters of fp32
  std::array<Axis, 5> order = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};  // leftmost varies fastest
  std::vector<int> layers_per_stage;                                               // empty: split evenly
  int microbatch_group = 0;  // interleaving: microbatches of a chunk before the next chunk; 0: pp
  bool sync_step =
      true;  // ranks take the optimizer step together (gradient norm, overflow), or each on its own
  double clip_grad = 0;  // gradients are scaled down to this norm over all parameters; 0: not

  // What data-parallel ranks divide among them, and when they exchange it (plan/sharding.h).
  int zero = 0;                        // 1: optimizer state, 2: and gradients, 3: and parameters
  int zero_shard = 0;                  // ranks that divide it, replicated across such groups; 0: all of dp
  bool overlap_param_gather = false;   // ZeRO-1, 2: gather parameters beside the next iteration's forwards
  bool reshard_after_forward = true;   // ZeRO-3: gather again for the backward
  bool reduce_each_microbatch = true;  // ZeRO-2, 3: else gradients stay whole until the last microbatch
  int prefetch = 1;                    // ZeRO-3: layers gathered ahead of the one that computes
  Precision grad_reduce = Precision::fp32;  // of the gradients on the wire
  Offload offload = Offload::none;
  Framework framework = Framework::megatron_core;

  int etp = 1;               // tensor parallel inside an expert
  double moe_imbalance = 1;  // rows that the busiest rank's experts receive, over an even share
  double moe_capacity = 0;   // experts padded to this multiple of an even share; 0: dropless
  // Minor version of the Megatron core that runs the experts, 0: current. Before 10 (v0.10) ep is carved out
  // of dp alone; of 10 to 12 an unfused permutation picks rows by a mask; up to 12 rows are weighted when
  // they have returned, later together with the activation.
  int core_release = 0;
  bool overlap_experts = false;  // exchanges of experts beside another microbatch's pass
  Dispatcher dispatcher = Dispatcher::all_to_all;
  int dispatcher_sms = 0;  // multiprocessors that DeepEP or HybridEP runs on; 0: as many as it takes itself
  ContextExchange cp_exchange = ContextExchange::ring;
  bool tp_comm_overlap = false;  // collectives and their GEMMs in chunks, side by side
  // Multiprocessors that the forward GEMM of attention's projection, of the MLP's second layer, leaves to its
  // reduce-scatter all along (Transformer Engine's num_sm with set_sm_margin); 0: none.
  int tp_comm_proj_sms = 0;
  int tp_comm_fc2_sms = 0;
  bool tp_backward_overlap =
      true;  // a collective of one half of the backward pass beside a GEMM of the other

  int gpus() const { return tp * cp * dp * pp; }
  int stages() const { return pp * vpp; }
  int edp() const { return tp * cp * dp / (ep * etp); }  // replicas of an expert
  // Messages between stages carry a tensor-parallel rank's part: of activations that all its ranks hold
  // whole.
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

// Every rule that this plan breaks for this model on this many GPUs, with what may mend it; empty when legal.
std::vector<BrokenRule> unmet_rules(const Plan& plan, const Model& model, std::int64_t gpus);

// The same as violations: each with the nearest values that satisfy this rule, whatever they do to others.
// Violation::pointer is the field's name in Plan ("pp", "micro_batch", ...) or "gpus".
std::vector<Violation> broken_rules(const Plan& plan, const Model& model, std::int64_t gpus);

}  // namespace rehearse
