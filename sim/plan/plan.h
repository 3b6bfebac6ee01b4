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
std::string to_string(Precision precision);
std::string to_string(ScheduleName schedule);  // "gpipe", "1f1b", "interleaved-1f1b", "zb-h1", ...

// Two chunks a rank, the second on the way back: stage s < pp and stage 2 pp - 1 - s on rank s.
bool is_v_shaped(ScheduleName schedule);

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
  Precision precision = Precision::bf16;
  bool sequence_parallel = false;
  bool fused_attention = true;      // FlashAttention: scores never reach memory
  bool overlap_grad_reduce = true;  // bucketed gradient all-reduce beside the backward pass
  bool overlap_p2p = false;         // pipeline messages beside compute; else compute waits for them
  bool one_queue = false;           // CUDA_DEVICE_MAX_CONNECTIONS=1: launch order is execution order
  double bucket_bytes = 160e6;      // gradient bucket: Megatron-LM's 40 M parameters of fp32
  std::array<Axis, 5> order = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};  // leftmost varies fastest
  std::vector<int> layers_per_stage;                                               // empty: split evenly
  int microbatch_group = 0;  // interleaving: microbatches of a chunk before the next chunk; 0: pp
  bool sync_step =
      true;  // ranks take the optimizer step together (gradient norm, overflow), or each on its own

  int gpus() const { return tp * cp * dp * pp; }
  int stages() const { return pp * vpp; }
  std::int64_t microbatches() const { return global_batch / (micro_batch * dp); }
};

// Every rule that this plan breaks for this model on this many GPUs, with the nearest legal values; empty
// when legal. Violation::pointer is the field's name in Plan ("pp", "micro_batch", ...) or "gpus".
std::vector<Violation> broken_rules(const Plan& plan, const Model& model, std::int64_t gpus);

}  // namespace rehearse
