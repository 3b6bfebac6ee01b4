#include "search/order/of_plan.h"

#include <algorithm>

#include "memory/memory.h"
#include "plan/schedules.h"
#include "plan/stages.h"
#include "result/shares.h"
#include "run/outside_allocator.h"
#include "schedule/orders.h"

namespace rehearse {

namespace {

Ticks pass_seconds(OpKind kind, int stage, int rank, const OpTimes& times) {
  return ticks_of(priced_parts(make_op(kind, stage), rank, times).total());
}

// Bytes of a rank's other memory, where activations leave no room to other peaks.
double state_bytes(int rank, const Plan& plan, const Work& work, double workspace_bytes) {
  constexpr double kAmple = 1e13;
  RankMemory memory;
  memory.rank = memory.stage = rank;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (pipeline_rank_of(stage, plan) != rank) continue;
    memory.parameters += work.parameters(stage);
    memory.expert_parameters += work.expert_parameters(stage);
  }
  memory.activations_bytes = kAmple;
  add_state(memory, plan, work, workspace_bytes);
  return memory.peak_bytes - kAmple;
}

// Reads messages, reductions and later ops from a complete schedule of the plan.
void read_loads(const Preparation& ready, OrderProblem& problem) {
  for (int rank = 0; rank < problem.ranks; ++rank) {
    const RankOps& ops = ready.schedule.ranks[static_cast<std::size_t>(rank)];
    const auto r = static_cast<std::size_t>(rank);
    bool after_step = false;
    std::vector<int> reductions(problem.stages.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const Ticks ticks = ticks_of(ready.loads.alone_s(ready.tasks.task(rank, i)));
      StageCosts& stage = problem.stages[op.stage];
      if (op.kind == OpKind::send_forward) stage.to_next = ticks;
      if (op.kind == OpKind::send_backward) stage.to_previous = ticks;
      if (op.kind == OpKind::reduce_grad && op.part == 0) ++reductions[op.stage];
      if (op.kind == OpKind::reduce_grad || op.kind == OpKind::reduce_replicas) {
        stage.reduction += ticks;
        stage.buckets = op.parts;
      }
      if (op.kind == OpKind::step) after_step = true;
      if (op.kind == OpKind::reduce_tied || after_step) problem.step[r] += ticks;
    }
    for (std::size_t s = 0; s < reductions.size(); ++s)
      if (reductions[s] > 1) problem.stages[s].reduction /= reductions[s];
  }
}

// Ranks that step on their own begin the next iteration with the same offsets as this one. So each counts its
// time from its own begin (result/report.cpp). That is assumed to be the arrival of the first microbatch.
void count_from_own_begin(OrderProblem& problem) {
  Ticks arrival = 0;
  for (int stage = 0; stage < problem.ranks; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    problem.step[static_cast<std::size_t>(problem.rank_of[s])] -= arrival;
    arrival += problem.stages[s].forward + problem.stages[s].to_next;
  }
}

}  // namespace

OrderProblem order_problem(const Experiment& experiment, double memory_bytes) {
  Experiment alone = experiment;
  alone.engine = Engine::reference;
  alone.fold = Fold::replicas;
  alone.order.reset();
  const Plan& plan = alone.plan;
  const Preparation ready = prepare(alone);
  OrderProblem problem;
  problem.ranks = plan.pp;
  problem.microbatches = static_cast<int>(plan.microbatches());
  const std::vector<StageBytes> bytes = stage_bytes(ready.work);
  for (int s = 0; s < plan.stages(); ++s) {
    const int rank = pipeline_rank_of(s, plan);
    const StageBytes& own = bytes[static_cast<std::size_t>(s)];
    problem.rank_of.push_back(rank);
    StageCosts& costs = problem.stages.emplace_back();
    costs.forward = pass_seconds(OpKind::forward, s, rank, ready.prices.times);
    costs.backward = pass_seconds(OpKind::backward, s, rank, ready.prices.times);
    costs.input = pass_seconds(OpKind::backward_input, s, rank, ready.prices.times);
    costs.weight = pass_seconds(OpKind::backward_weight, s, rank, ready.prices.times);
    costs.saved = own.saved.total;
    costs.kept = own.kept.total;
    costs.forward_peak = own.forward.total;
    costs.backward_peak = own.backward.total;
    costs.input_peak = own.backward_input.total;
    costs.weight_peak = own.backward_weight.total;
  }
  problem.step.assign(static_cast<std::size_t>(plan.pp), 0);
  read_loads(ready, problem);
  if (!plan.sync_step) count_from_own_begin(problem);
  const double workspace = gemm_workspace_bytes(alone.cluster.gpu.peak_flops.contains("fp8"));
  const std::vector<OutsideAllocator> outside = outside_allocator(alone, plan, ready.work);
  for (int rank = 0; rank < plan.pp; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const double beside = outside.empty() ? 0 : outside[r].all();
    problem.capacity.push_back(memory_bytes - beside - state_bytes(rank, plan, ready.work, workspace));
  }
  return problem;
}

std::vector<Plan> named_plans(const Plan& plan) {
  std::vector<Plan> plans;
  const int microbatches = static_cast<int>(plan.microbatches());
  for (const ScheduleName name : kScheduleNames) {
    if (is_v_shaped(name) != is_v_shaped(plan.schedule)) continue;
    Plan named = plan;
    named.schedule = name;
    named.microbatch_group = 0;
    const bool takes_chunks = traits(name).takes_chunks;
    if (!is_v_shaped(name) && plan.vpp > 1 && !takes_chunks) continue;
    if (!is_v_shaped(name) && plan.vpp == 1 && takes_chunks) continue;
    if (microbatches < traits(name).min_microbatches * plan.pp) continue;
    if (!takes_chunks) {
      plans.push_back(named);
      continue;
    }
    constexpr int kMaxGroups = 64;  // the clock runs each once; neighbouring groups differ little
    const int step = std::max(1, (microbatches - plan.pp) / kMaxGroups);
    for (int group = plan.pp; group <= microbatches; ++group) {
      if (microbatches % group != 0 && microbatches % group < plan.pp) continue;
      if (group != microbatches && (group - plan.pp) % step != 0) continue;
      named.microbatch_group = group;
      plans.push_back(named);
    }
  }
  return plans;
}

}  // namespace rehearse
