// How does each training framework behave? One file describes each, and no other file compares frameworks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "plan/options.h"

namespace rehearse {

struct Plan;

// Gradients that DeepSpeed reduces at once (runtime/zero/config.py, reduce_bucket_size).
inline constexpr double kDeepSpeedBucketElements = 5e8;

// A field of a scenario's plan that has another default in the framework itself.
struct OwnDefault {
  const char* key;
  double planned = 0;  // 1 or 0 of a switch
  double own = 0;      // the framework's
  bool is_switch = true;
  void (*set)(Plan& plan);
};

// The library whose kernels multiply in fp8.
enum class Fp8Library : std::uint8_t {
  other,               // Transformer Engine's kernels, whose casts no microbatch shares
  transformer_engine,  // as Megatron core calls them
  torchao
};

// How PyTorch's FullyShardedDataParallel holds parameters.
enum class Fsdp : std::uint8_t { none, flat, by_parameter };  // not at all; FSDP1; FSDP2

// Default split of layers over stages.
enum class LayerSplit : std::uint8_t { even, at_shares, by_parameters };  // plan/layer_split.h

// State that ZeRO-1 allocates late, in the first step (memory/late_blocks.h).
enum class LateState : std::uint8_t { none, of_deepspeed, of_nanotron };

// How the framework uses PyTorch's caching allocator (memory/reserved.h).
struct AllocatorUse {
  bool records_streams = false;  // messages hold their memory until their stream has passed
  bool waits_before_forward = false;
  enum class AfterPass : std::uint8_t {
    goes_on,
    waits_unsharded,
    waits_in_pipelines
  } after_pass = AfterPass::goes_on;
  int gather_buffers = 0;
  bool shares_queue_with_tp = false;
};

// When the framework makes NCCL's group of all model-parallel ranks.
enum class ModelGroup : std::uint8_t { always, unsharded, never };

struct FrameworkTraits {
  Framework framework;
  const char* name;     // "megatron-core"
  const char* project;  // for people: "Megatron core"
  const char* about;
  // The versions that are distinguished, oldest first. `as_version` sets the differences of an older one.
  std::span<const char* const> versions = {};
  void (*as_version)(Plan& plan, std::string_view version) = nullptr;

  // Sets defaults for the precision, degrees and ZeRO stage of the plan.
  void (*set_defaults)(Plan& plan);
  // Plans start from the settings of a tuned launch. These are the defaults with which the framework runs
  // everywhere.
  std::vector<OwnDefault> (*own_defaults)(const Plan& plan, const Model& model) = nullptr;
  LayerSplit layer_split = LayerSplit::even;
  int max_zero = 3;
  int max_zero_in_pipelines = 1;  // else gradients accumulate whole over microbatches
  bool trains_hybrids = false;    // state space beside attention
  bool predicts_tokens = false;   // multi-token prediction

  // Kernels of a layer.
  Fp8Library fp8 = Fp8Library::other;
  bool dtensor = false;           // tensor parallelism by PyTorch's DTensor: batch first, sharded loss
  bool keeps_gathered = false;    // inputs that sequence parallelism gathered, for the backward pass
  bool expands_biases = false;    // under torch.autocast
  bool wide_norms = false;        // norms read fp32 copies
  bool packs_heads = false;       // copies of queries, keys and values before FlashAttention
  bool rearranges_heads = false;  // the same before attention in separate kernels
  bool splits_heads = false;      // of the interleaved QKV GEMM, before rotary positions
  bool repeats_heads = false;     // of keys and values, up to those of the queries
  bool splits_qkv = false;        // a GEMM each for queries, keys, values
  bool splits_gate = false;       // a GEMM each for gate and up projection
  bool keeps_views = false;       // transposed copies live until the backward pass
  bool rope_fusion_lacks_yarn = false;
  bool softmax_of_2021 = false;  // its fused kernel takes some shapes alone
  bool gathers_logits = false;   // on every tensor-parallel rank, for a loss of whole rows
  bool attention_waits_for_host = false;
  bool groups_experts = true;     // one launch for all experts of a rank
  bool fuses_loss_by_te = false;  // --cross-entropy-fusion-impl te
  bool recomputes_norms = false;  // without being told to
  bool recomputes_towers = true;  // with the layers of the language model
  bool recomputes_ends = false;   // full recompute: embedding and head too

  // State and its messages.
  Fsdp fsdp = Fsdp::none;
  bool owners_broadcast = false;     // ZeRO-1: a rank owns whole parameters, steps and broadcasts them
  bool all_reduces_sharded = false;  // ZeRO-1 reduces gradients whole
  bool gathers_lists = false;        // ZeRO-3: a collective for each weight
  double bucket_copy_bytes = 0;      // read and written for a gradient in and out of its bucket
  bool has_local_ddp = false;        // gradients in a buffer that one all-reduce sums after the backward pass
  LateState late_state = LateState::none;
  AllocatorUse allocator = {};
  ModelGroup model_group = ModelGroup::always;
  bool is_of_2021 = false;  // NCCL 2.10, no process group for pipeline messages
};

namespace frameworks {
#define REHEARSE_FRAMEWORK(NAME) extern const FrameworkTraits NAME;
#include "plan/frameworks/frameworks.def"
}  // namespace frameworks

const FrameworkTraits& traits(Framework framework);
const FrameworkTraits& traits(const Plan& plan);  // of its framework

// Sets the fields that plan.framework decides, for the precision, degrees and ZeRO stage of the plan.
void apply_framework(Plan& plan);

// "megatron-core@0.9" sets the framework and the differences of its version; without a version, the newest.
// For an unknown name or version it sets nothing and returns false.
bool use_framework(std::string_view name_and_version, Plan& plan);

}  // namespace rehearse
