// How the training run is split: parallel degrees, batch, schedule, recompute, and the rules they must obey.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace rehearse {

enum class Axis : std::uint8_t { tp, cp, ep, dp, pp };
enum class Recompute : std::uint8_t { none, selective, full };
enum class Precision : std::uint8_t { bf16, fp16, fp8, fp32 };
// Megatron-LM's --recompute-method: full recompute keeps the input of every group of layers, or recomputes
// the first layers of each stage and keeps the others whole.
enum class RecomputeMethod : std::uint8_t { uniform, block };

// Megatron-LM's --recompute-modules, of dense layers: what selective recompute runs again.
enum class RecomputeModule : std::uint8_t { core_attn, mlp, layernorm };

// What training keeps for each parameter (plan/recipe.h).
enum class Recipe : std::uint8_t { megatron, zero, sagemaker, bf16, fp8_weights };

enum class ScheduleName : std::uint8_t { gpipe, one_f_one_b, interleaved };

std::string to_string(Axis axis);
std::string to_string(Recompute recompute);
std::string to_string(RecomputeMethod method);
std::string to_string(RecomputeModule module);
std::string to_string(Recipe recipe);
std::string to_string(Precision precision);
std::string to_string(ScheduleName schedule);  // "gpipe", "1f1b", "interleaved-1f1b"

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
  Recipe recipe = Recipe::megatron;
  Precision precision = Precision::bf16;
  bool sequence_parallel = false;
  bool fused_attention = true;      // FlashAttention: scores never reach memory
  bool overlap_grad_reduce = true;  // bucketed gradient all-reduce beside the backward pass
  bool overlap_p2p = false;         // pipeline messages beside compute; else compute waits for them
  bool one_queue = false;           // CUDA_DEVICE_MAX_CONNECTIONS=1: launch order is execution order
  double bucket_bytes = 160e6;      // gradient bucket: Megatron-LM's 40 M parameters of fp32
  std::array<Axis, 5> order = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};  // leftmost varies fastest
  std::vector<int> layers_per_stage;                                               // empty: split evenly

  int gpus() const { return tp * cp * dp * pp; }
  int stages() const { return pp * vpp; }
  std::int64_t microbatches() const { return global_batch / (micro_batch * dp); }
};

// Every rule that this plan breaks for this model on this many GPUs, with the nearest legal values; empty
// when legal. Violation::pointer is the field's name in Plan ("pp", "micro_batch", ...) or "gpus".
std::vector<Violation> broken_rules(const Plan& plan, const Model& model, std::int64_t gpus);

}  // namespace rehearse
