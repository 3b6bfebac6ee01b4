// Memory is never negative, is all given back, and is the same whoever asks.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "memory/late_blocks.h"
#include "memory/memory.h"
#include "memory/reserved.h"
#include "plan/recipe.h"
#include "result/activation_curve.h"
#include "result/memory_table.h"
#include "result/report_json.h"
#include "run.h"

namespace rehearse::properties {
namespace {

constexpr double kEnough = 1e17;  // bytes

RC_GTEST_PROP(LegalRun, HoldsNoNegativeMemoryAndGivesAllActivationsBack, ()) {
  const auto run = legal_run();
  const Report report = report_of(run->experiment, run->ready, run->reference);
  const std::vector<StageBytes> stages = stage_bytes(run->ready.work);
  for (const TimelineRank& rank : run->reference.ranks) {
    const auto pipeline_rank = static_cast<std::size_t>(rank.instance.pipeline_rank);
    const RankMemory& memory = report.memory[pipeline_rank];
    const double most = memory.activations_bytes + memory.logits_bytes;
    const auto curve = activation_curve(rank, run->ready.schedule.ranks[pipeline_rank], stages);
    double fullest = 0;
    for (const MemoryPoint& point : curve) {
      RC_ASSERT(point.bytes >= -1e-9 * most);
      fullest = std::max(fullest, point.bytes);
    }
    RC_ASSERT(std::abs(fullest - most) <= 1e-9 * most);
    RC_ASSERT(curve.empty() || std::abs(curve.back().bytes) <= 1e-9 * most);
  }
}

RC_GTEST_PROP(LegalRun, PeaksAtTheSumOfItsItems, ()) {
  const auto run = legal_run();
  for (const RankMemory& rank : report_of(run->experiment, run->ready, run->reference).memory) {
    double sum = 0;
    for (const double item : {rank.parameters_bytes, rank.gradients_bytes, rank.optimizer_bytes,
                              rank.activations_bytes, rank.logits_bytes, rank.buffers_bytes}) {
      RC_ASSERT(item >= 0);
      sum += item;
    }
    RC_ASSERT(std::abs(sum - rank.peak_bytes) <= 1e-12 * sum);
    RC_ASSERT(rank.master_bytes <= rank.optimizer_bytes);
    RC_ASSERT(rank.working_bytes <= rank.activations_bytes);
    RC_ASSERT(rank.workspace_bytes <= rank.buffers_bytes);
  }
}

// Tensor by tensor, live memory equals the lifetimes of ops, except for rounding. It is larger where the host
// runs ahead or a block is allocated late, and different where gathered parameters are in buffers.
RC_GTEST_PROP(LegalRun, AllocatesWhatItsLifetimesSay, ()) {
  const auto run = legal_run();
  const Plan& plan = run->experiment.plan;
  const Work& work = run->ready.work;
  const MemoryHabits habits = memory_habits(plan);
  for (const RankMemory& rank : report_of(run->experiment, run->ready, run->reference).memory) {
    const RankOps& ops = run->ready.schedule.ranks[static_cast<std::size_t>(rank.rank)];
    const ReservedBytes bytes = replay_allocations(ops, rank, plan, work, kEnough);
    RC_ASSERT(bytes.reserved >= bytes.allocated);
    if (habits.gather_buffers > 0 && plan.tp > 1) continue;
    const double alive = rank.activations_bytes + rank.logits_bytes;
    RC_ASSERT(bytes.allocated >= (1 - 1e-9) * alive - 1);
    if (habits.records_streams || drops_fresh_gradients(plan) || !late_blocks(rank, plan, work).empty())
      continue;
    RC_ASSERT(bytes.allocated <= (1 + 1e-9) * alive + 1);
  }
}

// `memory` asks the reference engine, `simulate` SimGrid: the order of a stream is the same in both.
RC_GTEST_PROP(LegalRun, HasTheMemoryThatTheMemoryVerbSays, ()) {
  const auto run = legal_run();
  const auto timeline = simulated(*run);
  RC_ASSERT(timeline.has_value());
  Json report = report_json(report_of(run->experiment, run->ready, *timeline), "")["memory"];
  const Report asked = report_of(run->experiment, run->ready, run->reference);
  const Json memory = memory_json(asked, {}, std::nullopt, "");
  RC_ASSERT(report.at("peak_bytes") == memory.at("peak_bytes"));
  Json ranks = report_json(asked, "")["memory"];
  for (Json* each : {&report, &ranks})
    for (Json& rank : each->at("ranks")) rank.erase("peak_time_s");
  RC_ASSERT(report == ranks);
}

}  // namespace
}  // namespace rehearse::properties
