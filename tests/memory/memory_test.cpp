#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "memory/memory.h"
#include "result/activation_curve.h"
#include "result/cases.h"

namespace rehearse {
namespace {

using namespace test;

// Narayanan et al. 2019: rank r of p holds at most p - r microbatches.
RC_GTEST_PROP(Memory, OneForwardOneBackwardHoldsAsManyMicrobatchesAsRanksFollow, ()) {
  const int pp = *rc::gen::inRange(1, 8);
  const int microbatches = *rc::gen::inRange(1, 20);
  const Plan plan = small_plan(pp, 1, microbatches);
  const Work work = make_work(small_model(pp), plan);
  const auto stages = stage_bytes(work);
  for (const RankMemory& rank : rank_memory(full_schedule(plan), plan, work)) {
    const int held = std::min(microbatches, pp - rank.rank);
    const StageBytes& stage = stages[static_cast<std::size_t>(rank.rank)];
    const double most =
        (stage.saved * (held - 1)).total + std::max(stage.forward.total, stage.backward.total);
    RC_ASSERT(std::abs(rank.activations_bytes + rank.logits_bytes - most) < 1e-9 * most);
    RC_ASSERT(rank.alive.size() == 1u);
    RC_ASSERT(static_cast<int>(rank.alive.front().microbatches.size()) == held);
  }
}

TEST(Memory, GpipeHoldsEveryMicrobatch) {
  Plan plan = small_plan(2, 1, 5);
  plan.schedule = ScheduleName::gpipe;
  const Work work = make_work(small_model(), plan);
  const auto memory = rank_memory(full_schedule(plan), plan, work);
  EXPECT_DOUBLE_EQ(memory[0].activations_bytes - memory[0].working_bytes, 5 * work.saved_bytes(0));
  EXPECT_EQ(memory[0].alive.front().microbatches, (std::vector{0, 1, 2, 3, 4}));
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

TEST(Memory, LogitsLieOnTheLastStageInFp32WithOneCopyInTheLoss) {
  const Plan plan = small_plan(2, 1, 1);
  const Work work = make_work(small_model(), plan);
  const auto stages = stage_bytes(work);
  const double logits = 4.0 * 128 * 1000;
  EXPECT_EQ(stages[0].saved.logits, 0);
  EXPECT_EQ(stages[1].saved.logits, logits);
  EXPECT_GE(stages[1].forward.logits, 2 * logits);
  EXPECT_LT(stages[1].forward.logits, 2.1 * logits);
}

// Operation by operation fp32 log-probabilities, their gradient and that of the logits; fused the logits and
// their gradient in 16 bits.
TEST(Memory, LossOfPyTorchHoldsTwelveBytesALogitAndAFusedOneFour) {
  Plan plan = small_plan(1, 1, 1);
  plan.framework = Framework::torchtitan;
  const double logits = 128 * 1000;
  const auto most = [&] {
    return stage_bytes(make_work(small_model(), plan)).at(0).backward.logits / logits;
  };
  EXPECT_NEAR(most(), 4, 0.1);
  plan.fused_cross_entropy = false;
  EXPECT_NEAR(most(), 12, 0.1);
}

// Each rank has half of the logits.
TEST(Memory, LossParallelOfPyTorchHoldsSixteenBytesALogit) {
  Plan plan = small_plan(1, 1, 1);
  plan.framework = Framework::torchtitan;
  plan.tp = 2;
  plan.sequence_parallel = true;
  plan.fused_cross_entropy = false;
  const double logits = 128 * 500;
  EXPECT_NEAR(stage_bytes(make_work(small_model(), plan)).at(0).backward.logits / logits, 16, 0.2);
}

TEST(Memory, FullRecomputeHoldsLayerInputsAndTheLayerThatRunsAgain) {
  Plan plan = small_plan(1, 1, 1);
  const double kept_8 = stage_bytes(make_work(small_model(8), plan)).at(0).saved.total;
  const double kept_1 = stage_bytes(make_work(small_model(1), plan)).at(0).saved.total;
  plan.recompute = Recompute::full;
  const StageBytes full_8 = stage_bytes(make_work(small_model(8), plan)).at(0);
  const StageBytes full_1 = stage_bytes(make_work(small_model(1), plan)).at(0);
  const double layer = (kept_8 - kept_1) / 7, input = 128 * 256 * 2;
  EXPECT_DOUBLE_EQ((full_8.saved.total - full_1.saved.total) / 7, input);
  EXPECT_GE(full_8.backward.total, 8 * input + layer - input);
}

// With G groups, G inputs stay and one group is recomputed. The minimum is near the square root of the number
// of layers (Chen et al. 2016, section 4).
TEST(Memory, UniformRecomputeTradesInputsKeptForLayersRunningAgain) {
  Plan plan = small_plan(1, 1, 1);
  plan.recompute = Recompute::full;
  const double input = 128 * 256 * 2;
  std::vector<StageBytes> by_unit;
  for (const int unit : {1, 2, 8}) {
    plan.recompute_layers = unit;
    by_unit.push_back(stage_bytes(make_work(small_model(8), plan)).at(0));
  }
  const double outside = by_unit[0].saved.total - 8 * input;
  EXPECT_DOUBLE_EQ(by_unit[1].saved.total, outside + 4 * input);
  EXPECT_DOUBLE_EQ(by_unit[2].saved.total, outside + input);
  plan.recompute = Recompute::none;
  plan.recompute_layers = 1;
  const StageBytes none = stage_bytes(make_work(small_model(8), plan)).at(0);
  EXPECT_GE(by_unit[2].backward.total, 0.9 * none.backward.total);  // all eight layers at once
  EXPECT_LT(by_unit[0].backward.total, by_unit[1].backward.total);
}

TEST(Memory, BlockRecomputeKeepsTheOtherLayersWhole) {
  Plan plan = small_plan(2, 1, 1);
  const auto none = stage_bytes(make_work(small_model(8), plan));
  plan.recompute = Recompute::full;
  const auto all = stage_bytes(make_work(small_model(8), plan));
  plan.recompute_method = RecomputeMethod::block;
  plan.recompute_layers = 3;
  const auto some = stage_bytes(make_work(small_model(8), plan));
  for (std::size_t s = 0; s < 2; ++s)
    EXPECT_DOUBLE_EQ(some[s].saved.total, (3 * all[s].saved.total + none[s].saved.total) / 4);
}

// Op I frees tensors that only input gradients read; tensors that W reads stay, which are more than nothing.
RC_GTEST_PROP(Memory, OfASplitBackwardIsFreedInTwoSteps, ()) {
  Plan plan = small_plan(1, 1, 1);
  plan.recompute = *rc::gen::element(Recompute::none, Recompute::selective);
  plan.fused_attention = *rc::gen::arbitrary<bool>();
  const StageBytes stage = stage_bytes(make_work(small_model(), plan)).at(0);
  RC_ASSERT(stage.kept.total > 0);
  RC_ASSERT(stage.backward_input.total >= stage.kept.total);
  RC_ASSERT(stage.backward_weight.total >= stage.kept.total);
  RC_ASSERT(stage.backward.total >= stage.saved.total);
  RC_ASSERT(stage.forward.total >= stage.saved.total);
}

void expect_curve_of_the_reported_peak(const Plan& plan) {
  const Case made = make_case(plan, Durations{});
  for (std::size_t r = 0; r < 3; ++r) {
    const auto curve =
        activation_curve(made.timeline.ranks[r], made.schedule.ranks[r], stage_bytes(made.work));
    ASSERT_EQ(curve.size(), 24u);
    double peak = 0, when = 0;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (curve[i].bytes > peak) when = curve[i].time_s;
      peak = std::max(peak, curve[i].bytes);
      if (i > 0) {
        EXPECT_LE(curve[i - 1].time_s, curve[i].time_s);
      }
    }
    EXPECT_NEAR(curve.back().bytes, 0, 1e-6 * peak);
    const RankMemory& memory = made.report.memory[r];
    EXPECT_DOUBLE_EQ(peak, memory.activations_bytes + memory.logits_bytes);
    EXPECT_DOUBLE_EQ(when, memory.peak_time_s);
  }
}

TEST(Memory, CurveComesBackToZeroAndItsPeakIsTheReported) {
  Plan plan = small_plan(3, 1, 6);
  expect_curve_of_the_reported_peak(plan);
  plan.sync_step = false;  // each rank begins its iteration on its own
  expect_curve_of_the_reported_peak(plan);
}

LiveBytes bytes(double total) {
  return {total, 0};
}

// Four layers that save 10 bytes each. A forward of 13 and a backward of 15 alternate. When the first layer
// runs backward, 30 bytes of the other microbatch are left, and 10 of the next exist, with the 2 that its
// second layer will read.
TEST(Memory, PassesBesideEachOtherHoldOneMicrobatchAndALayer) {
  StageBytes stage;
  stage.saved = bytes(40);
  stage.blocks = {{4, false, bytes(10), bytes(13), bytes(15), bytes(2), bytes(1)}};
  EXPECT_EQ(beside_each_other(stage, stage).total, 57);
  StageBytes last = stage;  // and the loss, which saves 5 and needs 50 back
  last.saved = bytes(45);
  last.blocks.push_back({1, true, bytes(5), bytes(40), bytes(50), {}, {}});
  EXPECT_EQ(beside_each_other(last, last).total, 90) << "the loss goes back before the next forward begins";
  EXPECT_EQ(beside_each_other(stage, last).total, 90);
  EXPECT_EQ(beside_each_other(last, stage).total, 80) << "and comes when the backward is through";
  StageBytes longer = stage;
  longer.saved = bytes(80);
  longer.blocks = {{8, false, bytes(10), bytes(13), bytes(15), bytes(2), bytes(1)}};
  EXPECT_EQ(beside_each_other(stage, longer).total, 97);
  EXPECT_EQ(beside_each_other(longer, stage).total, 83) << "its last layers run alone";
}

TEST(Memory, OfARecipeIsItsBytesTimesTheParameters) {
  Plan plan = small_plan(1, 1, 1);
  const Work work = make_work(small_model(), plan);
  const std::vector<std::pair<Recipe, double>> recipes = {
      {Recipe::megatron, 18}, {Recipe::zero, 16}, {Recipe::sagemaker, 20},  {Recipe::deepspeed_bf16, 20},
      {Recipe::autocast, 18}, {Recipe::bf16, 8},  {Recipe::fp8_weights, 18}};
  for (const auto& [recipe, bytes] : recipes) {
    plan.recipe = recipe;
    const RankMemory rank = rank_memory(full_schedule(plan), plan, work).at(0);
    EXPECT_DOUBLE_EQ(rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes,
                     bytes * work.parameters(0));
  }
}

TEST(Memory, Fp8WeightsThatAreHeldOnceTakeAByte) {
  Plan plan = small_plan(1, 1, 1);
  plan.precision = Precision::fp8;
  for (const Recipe recipe : {Recipe::fp8_weights, Recipe::zero}) {
    plan.recipe = recipe;
    plan.fp8_weight_copies = 2;
    const double twice = state_bytes(plan).total();
    plan.fp8_weight_copies = 1;
    EXPECT_EQ(state_bytes(plan).parameter, 1);
    EXPECT_EQ(state_bytes(plan).total(), twice - 1);
  }
}

// Once a step, for the weights of linear layers. Recipes with fp8 weights store the cast in the weight's own
// bytes.
TEST(Memory, CastsOfWeightsIn16BitsAreKept) {
  Plan plan = small_plan(1, 1, 1);
  plan.framework = Framework::megatron_core;
  const auto kept = [&](Precision precision, Recipe recipe) {
    plan.precision = precision;
    plan.recipe = recipe;
    return cast_weights_bytes(0, plan, make_work(small_model(), plan));
  };
  plan.fp8_either_layout = false;
  const double both = kept(Precision::fp8, Recipe::megatron);
  const double weights = both / 2;
  EXPECT_GT(weights, 0);
  EXPECT_LT(weights, make_work(small_model(), plan).parameters(0));
  EXPECT_DOUBLE_EQ(kept(Precision::fp4, Recipe::megatron), 1.125 * weights);
  EXPECT_DOUBLE_EQ(kept(Precision::fp4, Recipe::zero), 1.125 * weights);
  EXPECT_EQ(kept(Precision::fp8, Recipe::zero), 0);
  EXPECT_EQ(kept(Precision::bf16, Recipe::megatron), 0);
  plan.fp8_either_layout = true;
  EXPECT_DOUBLE_EQ(kept(Precision::fp8, Recipe::megatron), weights);
  const RankMemory rank = rank_memory(full_schedule(plan), plan, make_work(small_model(), plan)).at(0);
  EXPECT_DOUBLE_EQ(rank.buffers_bytes - rank.late_bytes, weights);
}

TEST(Memory, WorkspaceIsThatOfPyTorch) {
  EXPECT_EQ(gemm_workspace_bytes(true), 33554432);
  EXPECT_EQ(gemm_workspace_bytes(false), 8519680);
}

// They are there when the activations of their microbatch have gone.
TEST(Memory, FreshGradientsThatAreDroppedTakeThePlaceOfActivations) {
  const auto gradients = [](std::int64_t seq, int microbatches) {
    Plan plan = small_plan(2, 1, microbatches);
    plan.recipe = Recipe::nanotron;
    plan.seq = seq;
    const Work work = make_work(small_model(), plan);
    const RankMemory rank = rank_memory(full_schedule(plan), plan, work).at(0);
    const double given_up = rank.activations_bytes - rank.left_bytes;
    EXPECT_DOUBLE_EQ(rank.passing_gradients_bytes, std::max(0.0, 2 * work.parameters(0) - given_up));
    EXPECT_DOUBLE_EQ(rank.gradients_bytes, 4 * work.parameters(0) + rank.passing_gradients_bytes);
    EXPECT_DOUBLE_EQ(rank.left_bytes, microbatches > 1 ? work.saved_bytes(0) : 0);
    return rank.gradients_bytes / work.parameters(0);
  };
  EXPECT_GT(gradients(2, 1), 5);
  EXPECT_EQ(gradients(1024, 4), 4);
}

// DeepSpeed's bucket of gradients takes the place of activations, and needs room of its own where they are
// smaller.
TEST(Memory, WhatComesLateNeedsWhatActivationsDoNotLeave) {
  const auto rank_of = [](std::int64_t seq) {
    Plan plan = small_plan(1, 1, 4, 4);
    plan.framework = Framework::deepspeed;
    plan.recipe = Recipe::zero;
    plan.zero = 1;
    plan.seq = seq;
    const Work work = make_work(small_model(), plan);
    const RankMemory rank = rank_memory(full_schedule(plan), plan, work).at(0);
    const double activations = rank.activations_bytes + rank.logits_bytes;
    EXPECT_DOUBLE_EQ(rank.late_bytes, std::max(0.0, 2 * work.parameters(0) - activations));
    const double steady = rank.parameters_bytes + rank.gradients_bytes + rank.optimizer_bytes;
    EXPECT_DOUBLE_EQ(rank.peak_bytes, steady + std::max(activations, 2 * work.parameters(0)));
    return rank.late_bytes;
  };
  EXPECT_GT(rank_of(2), 0);
  EXPECT_EQ(rank_of(4096), 0);
}

}  // namespace
}  // namespace rehearse
