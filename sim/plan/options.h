// Which choices does a plan make, and which name has each? A name is the same in flags, files and reports.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rehearse {

enum class Axis : std::uint8_t { tp, cp, ep, dp, pp };
inline constexpr std::array kAxes = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};
enum class Recompute : std::uint8_t {
  none,
  selective,  // the modules of recompute_modules
  op,         // all but attention, scattered tensors and every second GEMM (plan/work/recompute.h)
  full
};
inline constexpr std::array kRecomputes = {Recompute::none, Recompute::selective, Recompute::op,
                                           Recompute::full};
enum class Precision : std::uint8_t { bf16, fp16, fp8, fp4, fp32 };
inline constexpr std::array kPrecisions = {Precision::bf16, Precision::fp16, Precision::fp8, Precision::fp4,
                                           Precision::fp32};
// Whether linear layers multiply tensors quantized into this precision, with all else in 16 bits. fp4 is
// NVFP4.
constexpr bool is_quantized(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp4;
}
// Megatron-LM's --recompute-method. uniform: full recompute keeps the input of every group of layers. block:
// it recomputes the first layers of each stage and keeps all activations of the others.
enum class RecomputeMethod : std::uint8_t { uniform, block };
inline constexpr std::array kRecomputeMethods = {RecomputeMethod::uniform, RecomputeMethod::block};

// Megatron-LM's --recompute-modules: modules that selective recompute recomputes.
enum class RecomputeModule : std::uint8_t {
  core_attn,       // all between q, k, v and the output projection
  mla_up_proj,     // latent attention: norms of the latents, up projections, rotary
  layernorm,       // both norms of a layer
  mlp,             // of dense layers
  moe,             // all of a sparse layer's experts, with dispatch and combine
  moe_act,         // the activation inside an expert
  shared_experts,  // of sparse layers
};
inline constexpr std::array kRecomputeModules = {RecomputeModule::core_attn,     RecomputeModule::mla_up_proj,
                                                 RecomputeModule::layernorm,     RecomputeModule::mlp,
                                                 RecomputeModule::moe,           RecomputeModule::moe_act,
                                                 RecomputeModule::shared_experts};

// State that training keeps for each parameter (plan/recipe.h).
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
inline constexpr std::array kRecipes = {Recipe::megatron,       Recipe::zero,     Recipe::sagemaker,
                                        Recipe::deepspeed_bf16, Recipe::nanotron, Recipe::fsdp,
                                        Recipe::autocast,       Recipe::bf16,     Recipe::fp8_weights};

// The part of fp8 operands that has its own scale.
enum class Fp8Scaling : std::uint8_t {
  tensor,  // each tensor: by maxima of earlier steps (Transformer Engine, delayed), or its own (torchao)
  tensor_gathered,  // the same, of weights that FSDP gathers in fp8 (torchao, enable_fsdp_float8_all_gather)
  row,              // each row of an operand (torchao)
  current,          // each tensor, by its own maximum (Transformer Engine; Megatron-LM's tensorwise)
  mx                // 32 elements each (MXFP8; Transformer Engine)
};
inline constexpr std::array kFp8Scalings = {Fp8Scaling::tensor, Fp8Scaling::tensor_gathered, Fp8Scaling::row,
                                            Fp8Scaling::current, Fp8Scaling::mx};

// The library whose kernels fuse the loss under Megatron core (--cross-entropy-fusion-impl).
enum class LossFusion : std::uint8_t {
  native,      // Megatron core's own, compiled by PyTorch
  te,          // Transformer Engine's, which computes the gradient with the loss, in fp32
  te_in_place  // before its release 2.18: in the precision of the logits, in their place
};
inline constexpr std::array kLossFusions = {LossFusion::native, LossFusion::te, LossFusion::te_in_place};

// How ranks of a context-parallel group access the keys and values of the others.
enum class ContextExchange : std::uint8_t {
  ring,       // p2p: keys and values travel from rank to rank behind the attention (Liu et al. 2023)
  gather,     // allgather: every rank gathers all keys and values (Llama 3, section 3.3.2)
  all_to_all  // a2a: sequence split becomes head split and back (Jacobs et al. 2023, Ulysses)
};
inline constexpr std::array kContextExchanges = {ContextExchange::ring, ContextExchange::gather,
                                                 ContextExchange::all_to_all};
// Who moves rows to their experts and back: Megatron-LM's --moe-token-dispatcher-type alltoall, or flex with
// a backend. NCCL moves a row once for each expert. The others (plan/fanout.h) move it once to each rank and
// node.
enum class Dispatcher : std::uint8_t { all_to_all, deepep, hybridep };
inline constexpr std::array kDispatchers = {Dispatcher::all_to_all, Dispatcher::deepep, Dispatcher::hybridep};

// Megatron core's --cuda-graph-modules: the parts of a layer that a pass launches at once, as one graph
// (plan/graphs.h).
enum class GraphModule : std::uint8_t {
  attn,           // attention, its norm and its residual
  mamba,          // the same of a state space
  mlp,            // the same of a dense layer's MLP
  moe,            // the same of a sparse layer's experts
  moe_router,     // of a sparse layer the norm, the router and the shared experts
  moe_preprocess  // of a sparse layer the preparation of its rows for dispatch
};
inline constexpr std::array kGraphModules = {GraphModule::attn,       GraphModule::mamba,
                                             GraphModule::mlp,        GraphModule::moe,
                                             GraphModule::moe_router, GraphModule::moe_preprocess};

enum class Offload : std::uint8_t { none, optimizer, activations };
inline constexpr std::array kOffloads = {Offload::none, Offload::optimizer, Offload::activations};

enum class Framework : std::uint8_t {
#define REHEARSE_FRAMEWORK(NAME) NAME,
#include "plan/frameworks/frameworks.def"
};
inline constexpr std::array kFrameworks = {
#define REHEARSE_FRAMEWORK(NAME) Framework::NAME,
#include "plan/frameworks/frameworks.def"
};

enum class ScheduleName : std::uint8_t {
#define REHEARSE_SCHEDULE(NAME, ...) NAME,
#include "plan/schedules.def"
};
inline constexpr std::array kScheduleNames = {
#define REHEARSE_SCHEDULE(NAME, ...) ScheduleName::NAME,
#include "plan/schedules.def"
};

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

// Two chunks a rank, the second on the way back: rank s has stage s < pp and stage 2 pp - 1 - s.
bool is_v_shaped(ScheduleName schedule);

}  // namespace rehearse
