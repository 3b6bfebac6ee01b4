// The loss scale of fp16: its benefit for gradients, and the handling of overflows.
#include "execute/loss_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execute/execute.h"
#include "same_mixed_training.h"

namespace rehearse {
namespace {

LossScaling dynamic_from(double initial, int hysteresis = 1) {
  LossScaling scaling;
  scaling.initial_loss_scale = initial;
  scaling.hysteresis = hysteresis;
  return scaling;
}

LossScaling fixed_at(double scale) {
  LossScaling scaling;
  scaling.loss_scale = scale;
  return scaling;
}

Training in_fp16(const Model& model, Plan plan, const LossScaling& scaling,
                 Recipe recipe = Recipe::megatron) {
  Training training = training_of(model, in_16_bits(plan, Precision::fp16, recipe));
  training.loss_scaling = scaling;
  return training;
}

std::vector<float> scales_after(LossScale& scale, const std::string& steps) {
  std::vector<float> scales;
  for (const char step : steps) {
    scale.update(step == 'x');
    scales.push_back(scale.value());
  }
  return scales;
}

TEST(LossScale, BeginsAsMegatronsDoes) {
  LossScale scale{LossScaling{}};
  EXPECT_EQ(scale.value(), 0x1p32F);
  EXPECT_THAT(scales_after(scale, "xxx"), testing::ElementsAre(0x1p32F, 0x1p31F, 0x1p30F));
  for (int step = 0; step < 999; ++step) scale.update(false);
  EXPECT_EQ(scale.value(), 0x1p30F);
  scale.update(false);
  EXPECT_EQ(scale.value(), 0x1p31F);
}

// A good step between two overflows does not give the hysteresis back, only growth does.
TEST(LossScale, IsHalvedByTheSecondOverflowAndDoubledAfterAWindow) {
  LossScaling scaling = dynamic_from(64, 2);
  scaling.loss_scale_window = 3;
  LossScale scale(scaling);
  EXPECT_THAT(scales_after(scale, "x.x..x...x...x"),
              testing::ElementsAre(64, 64, 32, 32, 32, 16, 16, 16, 32, 32, 32, 32, 64, 64));
}

TEST(LossScale, StaysWithinItsLimits) {
  LossScaling scaling = dynamic_from(8);
  scaling.min_loss_scale = 3;
  LossScale least(scaling);
  EXPECT_THAT(scales_after(least, "xxxx"), testing::ElementsAre(4, 3, 3, 3));
  scaling = dynamic_from(0x1p126);
  scaling.loss_scale_window = 1;
  LossScale most(scaling);
  EXPECT_THAT(scales_after(most, ".."), testing::ElementsAre(0x1p126F, 0x1p126F));
  LossScale fixed(fixed_at(1000));
  EXPECT_THAT(scales_after(fixed, "x.xx"), testing::Each(1000));
}

TEST(LossScaling, ThatIsIllegalIsRefusedWithTheNearestLegalValues) {
  EXPECT_TRUE(broken_rules(LossScaling{}).empty());
  LossScaling scaling = fixed_at(0);
  scaling.initial_loss_scale = INFINITY;
  scaling.min_loss_scale = -1;
  scaling.loss_scale_window = scaling.hysteresis = 0;
  std::vector<std::string> fields;
  for (const Violation& violation : broken_rules(scaling)) {
    fields.push_back(violation.pointer);
    EXPECT_FALSE(violation.nearest.empty());
  }
  EXPECT_THAT(fields, testing::ElementsAre("loss_scale", "initial_loss_scale", "min_loss_scale",
                                           "loss_scale_window", "hysteresis"));
  scaling = dynamic_from(4);
  scaling.min_loss_scale = 8;
  ASSERT_EQ(broken_rules(scaling).size(), 1U);
  EXPECT_EQ(broken_rules(scaling).front().nearest, "4");
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1);
  EXPECT_THROW(RankPool(in_fp16(tiny_llama(), plan, scaling)), InputError);
}

TEST(LossScaling, NeedsAllRanksToStepTogether) {
  Plan plan = in_16_bits(plan_of(ScheduleName::one_f_one_b, 1, 2, 1), Precision::fp16);
  EXPECT_TRUE(not_executable(tiny_llama(), plan).empty());
  plan.sync_step = false;
  ASSERT_EQ(not_executable(tiny_llama(), plan).size(), 1U);
  EXPECT_EQ(not_executable(tiny_llama(), plan).front().pointer, "sync_step");
}

// Several splits, each with other groups that must hear of an overflow.
std::vector<Plan> splits() {
  std::vector<Plan> plans = {
      plan_of(ScheduleName::one_f_one_b, 1, 1, 1), plan_of(ScheduleName::one_f_one_b, 2, 2, 1),
      plan_of(ScheduleName::zb_h1, 1, 4, 1),       plan_of(ScheduleName::gpipe, 1, 2, 2),
      plan_of(ScheduleName::one_f_one_b, 1, 1, 4), plan_of(ScheduleName::gpipe, 1, 1, 2),
      plan_of(ScheduleName::one_f_one_b, 1, 2, 1)};
  plans[1].sequence_parallel = true;
  plans[3].zero = 1;
  plans[3].clip_grad = kClip;
  plans[4].zero = 3;
  plans[5].zero = 2;
  plans[5].offload = Offload::optimizer;
  plans[6].offload = Offload::activations;
  return plans;
}

// The largest step of any weight; Adam's first moves each by the rate, whatever its gradient.
double largest_step(const WholeTensors& after, const WholeTensors& before) {
  double largest = 0;
  for (const auto& [name, weights] : after)
    for (std::size_t i = 0; i < weights.size(); ++i)
      largest = std::max(largest, std::abs(double{weights[i]} - double{before.at(name)[i]}));
  return largest;
}

// The scale falls from 2^40 to one without overflow. Until then no step is taken or counted. After that
// training equals one rank's; a rank with another scale would change it.
TEST(Overflow, SkipsTheStepOnEveryRankAndHalvesTheScale) {
  for (const Plan& plan : splits())
    for (const Model& model : {tiny_gpt(), tiny_llama()}) {
      SCOPED_TRACE(name_of({plan, model.tied_embeddings}));
      const Training training = in_fp16(model, plan, dynamic_from(0x1p40));
      const Training alone = in_fp16(model, rehearse::alone(plan), dynamic_from(0x1p40));
      RankPool rank_pool(training, {10, {}}), one(alone, {10, {}});
      const WholeTensors weights = rank_pool.parameters(), masters = rank_pool.master_weights();
      double scale = 0x1p40;
      StepResult found = rank_pool.step(), expected = one.step();
      for (; found.skipped && scale > 1; found = rank_pool.step(), expected = one.step()) {
        scale /= 2;
        ASSERT_TRUE(expected.skipped);
        ASSERT_EQ(found.loss_scale, scale);
        ASSERT_EQ(rank_pool.parameters(), weights);
        ASSERT_EQ(rank_pool.master_weights(), masters);
      }
      EXPECT_GT(scale, 0x1p10);
      EXPECT_LT(scale, 0x1p30);
      EXPECT_FALSE(expected.skipped);
      EXPECT_EQ(found.loss_scale, scale);
      std::string where;
      EXPECT_LT(largest_error(rank_pool.gradients(), one.gradients(), where),
                gradients_apart(alone, training.plan))
          << where;
      EXPECT_NEAR(largest_step(rank_pool.master_weights(), masters), double{training.rate},
                  1e-3 * double{training.rate});
      EXPECT_NEAR(rank_pool.step().loss, one.step().loss, losses_apart(alone, Precision::fp16));
    }
}

bool is_finite(const std::vector<float>& tensor) {
  return std::ranges::all_of(tensor, [](float element) { return std::isfinite(element); });
}

// Gradients that are accumulated in fp16. At the smallest scale that overflows, only those of some ranks do.
TEST(Overflow, OfSomeRanksIsHeardOfByAll) {
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 4, 1);
  bool skipped = false;
  for (double scale = 0x1p10; !skipped && scale < 0x1p40; scale *= 2) {
    RankPool rank_pool(in_fp16(tiny_llama(), plan, fixed_at(scale), Recipe::zero), {10, {}});
    const WholeTensors masters = rank_pool.master_weights();
    skipped = rank_pool.step().skipped;
    int finite = 0, all = 0;
    for (const auto& [name, gradient] : rank_pool.gradients()) {
      finite += is_finite(gradient) ? 1 : 0;
      ++all;
    }
    EXPECT_EQ(skipped, finite < all);
    if (!skipped) continue;
    EXPECT_GT(finite, all / 2);
    EXPECT_EQ(rank_pool.master_weights(), masters);
  }
  EXPECT_TRUE(skipped);
}

// The share of elements that are 0 though fp32 has them.
double vanished(const WholeTensors& narrow, const WholeTensors& wide) {
  double zeros = 0, all = 0;
  for (const auto& [name, elements] : wide)
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (elements[i] == 0) continue;
      ++all;
      if (narrow.at(name)[i] == 0) ++zeros;
    }
  return zeros / all;
}

// In a mean over many tokens each token has a share that is small for fp16. With 64 times as many (a scale of
// 1 / 64) it is too small: 2048 tokens with a vocabulary of 48 have gradients of 10^-5 and 2 10^-7, compared
// with 2^-24.
TEST(Underflow, LosesGradientsThatAScaleKeeps) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1);
  plan.global_batch = 256;
  plan.micro_batch = 64;
  RankPool fp32(training_of(tiny_llama(), plan), {10, {}});
  fp32.step();
  const WholeTensors wide = fp32.gradients();
  const auto gradients_at = [&](double scale) {
    RankPool rank_pool(in_fp16(tiny_llama(), plan, fixed_at(scale), Recipe::zero), {10, {}});
    EXPECT_FALSE(rank_pool.step().skipped);
    return rank_pool.gradients();
  };
  std::string where;
  const WholeTensors kept = gradients_at(kLossScale), lost = gradients_at(1.0 / 64);
  const double kept_error = largest_error(kept, wide, where);
  EXPECT_LT(kept_error, apart_when_computed(training_of(tiny_llama(), plan), Precision::fp16));
  EXPECT_GT(largest_error(gradients_at(1), wide, where), 10 * kept_error);
  EXPECT_GT(largest_error(lost, wide, where), 0.5);
  EXPECT_EQ(vanished(kept, wide), 0);
  EXPECT_GT(vanished(lost, wide), 0.1);
}

// No power of two, so that dividing rounds; far from those, too.
TEST(LossScale, ChangesGradientsByRoundingAlone) {
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1);
  const auto gradients_at = [&](double scale) {
    RankPool rank_pool(in_fp16(tiny_llama(), plan, fixed_at(scale)), {10, {}});
    rank_pool.step();
    return rank_pool.gradients();
  };
  const WholeTensors expected = gradients_at(4096);
  const double tolerance = apart_when_computed(training_of(tiny_llama(), plan), Precision::fp16);
  for (const double scale : {1000.0, 5000.0, 65536.0}) {
    std::string where;
    EXPECT_LT(largest_error(gradients_at(scale), expected, where), tolerance) << where << " at " << scale;
  }
}

TEST(Execution, ReportsLossScalesAndSkippedSteps) {
  const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  LossScaling scaling = dynamic_from(0x1p40, 2);
  const Execution found = execute(in_fp16(tiny_llama(), plan, scaling), {1, 2, {10, {}}});
  EXPECT_THAT(found.loss_scales, testing::ElementsAre(0x1p40, 0x1p39, 0x1p38));
  EXPECT_THAT(found.skipped_steps, testing::ElementsAre(0, 1, 2));
  const Execution fits = execute(in_fp16(tiny_llama(), plan, fixed_at(kLossScale)), {0, 2, {10, {}}});
  EXPECT_THAT(fits.loss_scales, testing::ElementsAre(kLossScale, kLossScale));
  EXPECT_TRUE(fits.skipped_steps.empty());
  EXPECT_TRUE(execute(training_of(tiny_llama(), plan), {0, 1, {10, {}}}).loss_scales.empty());
}

}  // namespace
}  // namespace rehearse
