#include "memory/memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "memory/activation_events.h"
#include "memory/late_blocks.h"
#include "plan/owners.h"
#include "plan/recipe.h"
#include "plan/sharding.h"

namespace rehearse {

namespace {

// Microbatches whose activations are live while op number `last` runs.
std::vector<LiveMicrobatches> alive_during(const RankOps& ops, std::size_t stages, std::size_t last) {
  using Kind = ActivationEvent::Kind;
  std::map<int, std::set<int>> alive;
  bool over = false;
  walk_activations(ops, stages, [&](const ActivationEvent& event) {
    if (over) return;
    const Op& op = ops[event.op];
    if (event.kind == Kind::begins && op.kind == OpKind::forward) alive[op.stage].insert(op.microbatch);
    over = event.kind == Kind::begins && event.op >= last;
    const Op& ended = event.backward != nullptr ? *event.backward : op;
    if (event.kind == Kind::ends && completes_gradient(ended.kind))
      alive[ended.stage].erase(ended.microbatch);
  });
  std::vector<LiveMicrobatches> list;
  for (const auto& [stage, microbatches] : alive)
    if (!microbatches.empty()) list.push_back({stage, {microbatches.begin(), microbatches.end()}});
  return list;
}

void add_activations(RankMemory& memory, const RankOps& ops, const std::vector<StageBytes>& stages) {
  LiveBytes most, held;
  std::size_t peak_op = 0;
  walk_live_bytes(ops, stages,
                  [&](std::size_t i, const LiveBytes& between, const LiveBytes& now, bool ended) {
                    if (ended && completes_gradient(ops[i].kind))
                      memory.left_bytes = std::max(memory.left_bytes, now.total);
                    if (now.total <= most.total) return;
                    most = now;
                    held = between;
                    peak_op = i;
                  });
  if (most.total <= 0) return;
  memory.logits_bytes = most.logits;
  memory.activations_bytes = most.others();
  memory.working_bytes = std::max(0.0, most.others() - held.others());
  memory.peak_op = static_cast<std::int32_t>(peak_op);
  memory.peak_microbatch = ops[peak_op].microbatch;
}

// Parameters outside experts of the owner that has most of them. None where shares are even.
std::optional<double> most_owned(int pipeline_rank, const Plan& plan, const Work& work) {
  if (!owns_parameters(plan)) return {};
  double owned = 0;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    if (pipeline_rank_of(stage, plan) == pipeline_rank) owned += stepped_dense(work, plan, stage);
  return owned;
}

// `gradients` are complete only after the backward pass has released its activations. They reuse that memory,
// so only the excess counts.
void let_pass(double& gradients, RankMemory& memory) {
  const double given_up = memory.activations_bytes + memory.logits_bytes - memory.left_bytes;
  gradients = memory.passing_gradients_bytes = std::max(0.0, gradients - given_up);
}

// With ZeRO-3, frozen parameters are divided like others.
double frozen_bytes(int pipeline_rank, const Plan& plan, const Work& work) {
  double elements = 0;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    if (pipeline_rank_of(stage, plan) == pipeline_rank) elements += work.frozen_parameters(stage);
  return elements * frozen_parameter_bytes(plan) / sharding(plan).parameters;
}

void add_parameters(RankMemory& memory, const Plan& plan, const Work& work) {
  StateBytes state = held_state(memory.parameters - memory.expert_parameters, memory.expert_parameters, plan,
                                most_owned(memory.rank, plan, work));
  if (drops_fresh_gradients(plan)) let_pass(state.fresh_gradient, memory);
  if (gradients_come_anew(plan)) let_pass(state.gradient, memory);
  memory.parameters_bytes = state.parameter + frozen_bytes(memory.rank, plan, work);
  // Buckets of the gradient all-reduce are slices of one buffer, reduced in place. Some recipes have buckets
  // of their own.
  memory.gradients_bytes = state.gradients();
  memory.master_bytes = state.master;
  memory.optimizer_bytes = state.optimizer();
}

}  // namespace

double gemm_workspace_bytes(bool hopper_or_later) {
  constexpr double kKib = 1024;
  return hopper_or_later ? 8 * 4096 * kKib : (2 * 4096 + 8 * 16) * kKib;
}

std::vector<RankMemory> activation_memory(const Schedule& schedule, const Plan& plan, const Work& work,
                                          const std::vector<StageBytes>& stages) {
  std::vector<RankMemory> ranks;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankMemory& memory = ranks.emplace_back();
    memory.rank = memory.stage = static_cast<int>(r);
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
      if (pipeline_rank_of(s, plan) != memory.rank) continue;
      memory.parameters += work.parameters(s);
      memory.expert_parameters += work.expert_parameters(s);
    }
    add_activations(memory, schedule.ranks[r], stages);
  }
  return ranks;
}

void add_state(RankMemory& memory, const Plan& plan, const Work& work, double workspace_bytes) {
  add_parameters(memory, plan, work);
  const double left_room = memory.activations_bytes + memory.logits_bytes + memory.passing_gradients_bytes;
  memory.late_bytes = std::max(0.0, most_late_bytes(memory, plan, work) - left_room);
  // One message each way may be on the wire while the running ops hold their tensors.
  memory.buffers_bytes = workspace_bytes + (plan.pp > 1 ? 2 * work.boundary_bytes : 0) +
                         sharding_buffers(memory.rank, plan, work) +
                         cast_weights_bytes(memory.rank, plan, work) + memory.late_bytes;
  memory.workspace_bytes = workspace_bytes;
  memory.peak_bytes = memory.parameters_bytes + memory.gradients_bytes + memory.optimizer_bytes +
                      memory.activations_bytes + memory.logits_bytes + memory.buffers_bytes;
}

std::vector<RankMemory> rank_memory(const Schedule& schedule, const Plan& plan, const Work& work,
                                    double workspace_bytes) {
  std::vector<RankMemory> ranks = activation_memory(schedule, plan, work, stage_bytes(work));
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    add_state(ranks[r], plan, work, workspace_bytes);
    if (ranks[r].peak_op >= 0)
      ranks[r].alive =
          alive_during(schedule.ranks[r], work.parts.size(), static_cast<std::size_t>(ranks[r].peak_op));
  }
  return ranks;
}

}  // namespace rehearse
