// fp16: every plan trains as one rank in fp16 does, and that one as one in fp32.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "same_mixed_training.h"

namespace rehearse {
namespace {

const std::vector<Recipe> kMixedRecipes = {Recipe::megatron, Recipe::zero, Recipe::sagemaker, Recipe::fsdp};

Plan in_fp16(const Plan& plan, Recipe recipe = Recipe::megatron) {
  return in_16_bits(plan, Precision::fp16, recipe);
}

class Fp16 : public testing::TestWithParam<Mixed> {};

TEST_P(Fp16, TrainsAsOneRankInFp16Does) {
  expect_same_training_in_16_bits(GetParam().model(), GetParam().plan);
}

INSTANTIATE_TEST_SUITE_P(Some, Fp16, testing::ValuesIn(mixes(Precision::fp16, kMixedRecipes)),
                         [](const auto& mixed) { return name_of(mixed.param); });

TEST(Fp16Weights, AreTheirMastersRounded) {
  for (const Recipe recipe : kMixedRecipes) {
    SCOPED_TRACE(to_string(recipe));
    Plan plan = in_fp16(plan_of(ScheduleName::one_f_one_b, 1, 2, 2), recipe);
    plan.zero = 1;
    RankPool rank_pool(in_16_bits(tiny_llama(), plan), {10, {}});
    for (int step = 0; step < 2; ++step) {
      const WholeTensors weights = rank_pool.parameters(), masters = rank_pool.master_weights();
      EXPECT_EQ(masters.size(), weights.size());
      for (const auto& [name, master] : masters)
        for (std::size_t i = 0; i < master.size(); ++i)
          ASSERT_EQ(weights.at(name)[i], float{kernels::Fp16(master[i])}) << name << " after step " << step;
      rank_pool.step();
    }
  }
}

// With 3 bits more than bf16 has, eight times as near.
TEST(Fp16Training, FollowsTheGradientsAndLossesOfFp32) {
  for (const Model& model : {tiny_gpt(), tiny_llama()})
    for (const Recipe recipe : kMixedRecipes) {
      SCOPED_TRACE(model.name + ", " + to_string(recipe));
      const Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 1);
      const Training wide = training_of(model, plan);
      RankPool fp32(wide, {10, {}}), fp16(in_16_bits(model, in_fp16(plan, recipe)), {10, {}});
      const double tolerance = losses_apart(wide, Precision::fp16);
      double first = 0, last = 0;
      for (int step = 0; step < 10; ++step) {
        last = fp32.step().loss;
        const StepResult found = fp16.step();
        EXPECT_NEAR(found.loss, last, tolerance) << "step " << step;
        EXPECT_FALSE(found.skipped);
        std::string where;
        if (step == 0) {
          first = last;
          EXPECT_LT(largest_error(fp16.gradients(), fp32.gradients(), where),
                    apart_when_computed(wide, Precision::fp16))
              << where;
        }
      }
      EXPECT_GT(first - last, 10 * tolerance) << "what does not learn would follow too";
    }
}

// All but the loss, its logits and the log-sum-exps of attention have two bytes instead of four.
TEST(Fp16Activations, TakeAsManyBytesAsThoseOfBf16) {
  const auto peak = [](Precision precision) {
    RankPool rank_pool(in_16_bits(tiny_llama(), in_16_bits(plan_of(ScheduleName::gpipe, 1, 1, 1), precision)),
                       {10, {}});
    rank_pool.step();
    return rank_pool.peak_activation_bytes().front();
  };
  EXPECT_EQ(peak(Precision::fp16), peak(Precision::bf16));
}

}  // namespace
}  // namespace rehearse
