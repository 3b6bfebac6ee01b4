// Which passes complete a compute-only schedule? Each takes a schedule and returns a fuller one.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace rehearse {

// SEND and RECV of activations and gradients between stages on different ranks. Messages enter all lists in
// one global order, so that they cannot deadlock even on a single queue. Without `overlap`, a compute op also
// waits for every message that its rank issued before it.
Schedule add_transfers(const Schedule& schedule, bool overlap);

// REDUCE_GRAD for each stage of each rank, then STEP after every reduction. Without `overlap`, there is one
// REDUCE_GRAD a stage, issued and started after the rank's last backward. With `overlap`, the last backward
// of stage s is split into buckets[s] parts, and REDUCE_GRAD part i waits for part i of it. `replicas` == 1
// adds no REDUCE_GRAD. `tied` adds REDUCE_TIED on the ranks of the first and the last stage (pp > 1).
struct GradientSync {
  bool overlap = true;
  bool tied = false;
  int replicas = 1;
  std::vector<int> buckets;      // by stage, each >= 1
  bool each_microbatch = false;  // each backward is split, with its reductions; not only the last one
  bool across = false;           // REDUCE_REPLICAS after each REDUCE_GRAD: shards are summed over groups
  bool to_host = false;          // then OFFLOAD_GRAD; after STEP, RELOAD_PARAM for each stage
  bool alone = false;            // a rank continues to compute and gather only after its reduction
  bool gathers_ahead = true;     // whether units are gathered before their turn, as many as the plan says
};
Schedule add_gradient_sync(const Schedule& schedule, const GradientSync& sync);

// Pairs each F with the B of another microbatch that follows it on its rank. The two take turns layer by
// layer, with expert all-to-alls of one beside kernels of the other (Megatron-LM, combined_1f1b.py;
// DeepSeek-V3, section 3.2.1).
Schedule pair_passes(const Schedule& schedule);

// UNSHARD of parameters that are divided over data-parallel ranks, for schedules that end with STEP.
enum class GatherTime : std::uint8_t {
  after_step,     // once, each stage whole
  first_forward,  // once, unit by unit before the stage's first forward: the last iteration's steps
  iteration,      // the same, with RESHARD after the stage's last backward
  microbatch,     // before each unit's forward where it is not whole, RESHARD after its backward
  each_use        // before each unit's forward and again before its backward, RESHARD after both
};

// Ops that wait for a gather or a drop are split into units[stage] parts. Part i of a forward computes unit
// i, part i of a backward unit units - 1 - i. With microbatch and each_use, a unit is gathered once at most
// `prefetch` others wait between it and the one that computes. With each_use, at most prefetch + 1 units are
// whole at a time.
struct ParameterGather {
  GatherTime time = GatherTime::after_step;
  int prefetch = 1;
  std::vector<int> units;         // by stage, each >= 1; of a backward already in parts, as many
  bool after_reductions = false;  // microbatch, each_use: it waits for every REDUCE_GRAD before it
};
Schedule add_parameter_gather(const Schedule& schedule, const ParameterGather& gather);

// OFFLOAD after each forward and RELOAD before its backward, where at least two ops stand between them.
// Copies run beside compute. An op waits for the OFFLOAD of the op before its predecessor. RELOAD begins with
// the op before its backward. So copies of two microbatches take up memory at a time.
Schedule add_activation_offload(const Schedule& schedule);

// order -> transfers -> pairs -> offload -> gradient sync -> parameter gathers, by the plan's options. With
// ZeRO the buckets are the gathered units.
Schedule complete_schedule(const Plan& plan, const GradientSync& sync);

// The same from an order of another origin. If the order has messages, they stay in place. UNSHARD, RESHARD
// and REDUCE_GRAD follow from the plan and are placed anew.
Schedule complete_schedule(const Schedule& order, const Plan& plan, const GradientSync& sync);
Schedule with_transfers(const Schedule& order, const Plan& plan);

}  // namespace rehearse
