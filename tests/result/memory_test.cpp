#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cases.h"
#include "result/memory.h"

namespace rehearse {
namespace {

using namespace test;

// Narayanan et al. 2019: rank r of p holds at most p - r microbatches.
RC_GTEST_PROP(Memory, OneForwardOneBackwardHoldsAsManyMicrobatchesAsRanksFollow, ()) {
  const int pp = *rc::gen::inRange(1, 8);
  const int microbatches = *rc::gen::inRange(1, 20);
  const Plan plan = small_plan(pp, 1, microbatches);
  const Work work = make_work(small_model(pp), plan);
  const auto stages = stage_activations(work);
  for (const RankMemory& rank : rank_memory(full_schedule(plan), plan, work)) {
    const int held = std::min(microbatches, pp - rank.rank);
    const auto stage = static_cast<std::size_t>(rank.rank);
    RC_ASSERT(std::abs(rank.activations_bytes - held * stages[stage].saved) < 1e-6 * stages[stage].saved);
    RC_ASSERT(rank.logits_bytes == held * stages[stage].logits);
  }
}

TEST(Memory, GpipeHoldsEveryMicrobatch) {
  Plan plan = small_plan(2, 1, 5);
  plan.schedule = ScheduleName::gpipe;
  const Work work = make_work(small_model(), plan);
  const auto memory = rank_memory(full_schedule(plan), plan, work);
  EXPECT_DOUBLE_EQ(memory[0].activations_bytes, 5 * work.saved_bytes(0));
}

TEST(Memory, StateIsEighteenBytesAParameterInMixedPrecision) {
  Plan plan = small_plan(1, 1, 1);
  const Work work = make_work(small_model(), plan);
  const RankMemory mixed = rank_memory(full_schedule(plan), plan, work).at(0);
  EXPECT_DOUBLE_EQ(mixed.parameters_bytes, 2 * work.parameters(0));
  EXPECT_DOUBLE_EQ(mixed.gradients_bytes, 4 * work.parameters(0));
  EXPECT_DOUBLE_EQ(mixed.optimizer_bytes, 12 * work.parameters(0));
  plan.precision = Precision::fp32;
  const RankMemory full = rank_memory(full_schedule(plan), plan, work).at(0);
  EXPECT_DOUBLE_EQ(full.parameters_bytes + full.gradients_bytes + full.optimizer_bytes,
                   16 * work.parameters(0));
}

TEST(Memory, PeakIsTheSumOfItsItems) {
  const Plan plan = small_plan(2, 2, 4);
  const Work work = make_work(small_model(), plan);
  for (const RankMemory& rank : rank_memory(full_schedule(plan), plan, work)) {
    EXPECT_DOUBLE_EQ(rank.peak_bytes, rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes +
                                          rank.activations_bytes + rank.logits_bytes + rank.buffers_bytes);
    EXPECT_DOUBLE_EQ(rank.buffers_bytes, 2 * 128 * 256 * 2);
  }
}

TEST(Memory, LogitsLieOnTheLastStageInFp32) {
  const Plan plan = small_plan(2, 1, 1);
  const auto stages = stage_activations(make_work(small_model(), plan));
  EXPECT_EQ(stages[0].logits, 0);
  EXPECT_GE(stages[1].logits, 4.0 * 128 * 1000);
  EXPECT_LT(stages[1].logits, 1.1 * 4.0 * 128 * 1000);
}

TEST(Memory, FullRecomputeKeepsLayerInputsAndOneLayerBeingRecomputed) {
  Plan plan = small_plan(1, 1, 1);
  const auto kept = stage_activations(make_work(small_model(8), plan)).at(0);
  EXPECT_EQ(kept.recomputed, 0);
  const auto kept_one = stage_activations(make_work(small_model(1), plan)).at(0);
  const double layer = (kept.saved - kept_one.saved) / 7;
  plan.recompute = Recompute::full;
  const auto full = stage_activations(make_work(small_model(8), plan)).at(0);
  const auto full_one = stage_activations(make_work(small_model(1), plan)).at(0);
  const double input = 128 * 256 * 2;
  EXPECT_NEAR((full.saved - full_one.saved) / 7, input, 1e-6);
  EXPECT_NEAR(full.recomputed, layer - input, 1e-6 * layer);
}

TEST(Memory, CurveComesBackToZero) {
  const Plan plan = small_plan(3, 1, 6);
  const Case made = make_case(plan, Durations{});
  for (std::size_t r = 0; r < 3; ++r) {
    const auto curve =
        activation_curve(made.timeline.ranks[r], made.schedule.ranks[r], stage_activations(made.work));
    ASSERT_EQ(curve.size(), 12u);
    double peak = 0;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      peak = std::max(peak, curve[i].bytes);
      if (i > 0) {
        EXPECT_LE(curve[i - 1].time_s, curve[i].time_s);
      }
    }
    EXPECT_NEAR(curve.back().bytes, 0, 1e-6 * peak);
    const RankMemory& memory = made.report.memory[r];
    EXPECT_DOUBLE_EQ(peak, memory.activations_bytes + memory.logits_bytes);
  }
}

}  // namespace
}  // namespace rehearse
