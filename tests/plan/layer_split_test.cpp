// Uneven stages: Megatron-LM's ways to say them, and the split by cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/layer_split.h"
#include "work_case.h"

namespace rehearse {
namespace {

using Layers = std::vector<int>;

Plan plan_of(int pp, int vpp) {
  Plan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  return plan;
}

TEST(Layout, OfMegatronLMsExampleHas8StagesAnd22Layers) {
  EXPECT_EQ(parse_layout("Et*2|(t*3|)*6,t*2L", {}), (Layers{2, 3, 3, 3, 3, 3, 3, 2}));
}

TEST(Layout, NestsRepetitionsAndAllowsStagesWithoutLayers) {
  EXPECT_EQ(parse_layout("E|((t|)*2tt|)*2L", {}), (Layers{0, 1, 1, 2, 1, 1, 2, 0}));
  EXPECT_EQ(parse_layout("EL", {}), (Layers{0}));
}

TEST(Layout, ThatIsMalformedIsRejected) {
  for (const char* text : {"", "t", "tE|L", "Et|t", "EtEL", "E(t|L", "Et)|L", "Et*|L", "Ex|L", "Em|L", "LE",
                           "ELL", "E(t*1000000)*1000000|L", "Et*99999999999999999999L"})
    EXPECT_THROW(parse_layout(text, {}), InputError) << text;
}

TEST(Layout, OfDeepSeekV3HasItsModuleBeforeTheLoss) {
  Model model;
  model.mtp_layers = 1;
  const Layers split = parse_layout("Et*4|(t*4|)*14tmL", model);
  EXPECT_EQ(split.size(), 16U);
  EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0), 61);
  for (const char* text : {"Et*4|tL", "Et|m|tL", "Et|m|L", "Et|mmL", "Et|tLm"})
    EXPECT_THROW(parse_layout(text, model), InputError) << text;
}

TEST(Split, WithGivenEndsSharesTheRestEvenly) {
  EXPECT_EQ(split_with_ends(30, plan_of(4, 1), 7, 5), (Layers{7, 9, 9, 5}));
  EXPECT_EQ(split_with_ends(31, plan_of(4, 1), -1, 7), (Layers{8, 8, 8, 7}));
  EXPECT_EQ(split_with_ends(28, plan_of(3, 2), 6, 10), (Layers{3, 6, 5, 3, 6, 5}));
}

TEST(Split, WithGivenEndsFollowsTheV) {
  Plan plan = plan_of(3, 2);
  plan.schedule = ScheduleName::zb_v;
  EXPECT_EQ(split_with_ends(28, plan, 6, 10), (Layers{3, 6, 5, 5, 6, 3}));
}

TEST(Split, WithGivenEndsThatDoesNotComeOutEvenIsRejected) {
  EXPECT_THROW(split_with_ends(30, plan_of(4, 1), 7, 6), InputError);
  EXPECT_THROW(split_with_ends(30, plan_of(4, 2), 3, 3), InputError);
  EXPECT_THROW(split_with_ends(30, plan_of(2, 1), 10, 10), InputError);
  EXPECT_THROW(split_with_ends(30, plan_of(4, 1), 40, -1), InputError);
}

// Llama-3.1-405B's 126 layers over 16 stages of 8.
TEST(Split, WithEmbeddingAndLossAsLayersTakesOneOffEachEnd) {
  const Layers split = split_with_embedding(126, plan_of(16, 1), true, true);
  EXPECT_EQ(split.front(), 7);
  EXPECT_EQ(split.back(), 7);
  EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0), 126);
  EXPECT_THROW(split_with_embedding(126, plan_of(16, 1), true, false), InputError);
}

// Layers of 4 h h + 3 h f multiplications, a head of V h: nanotron's cost of a block.
Model weighing(std::int64_t layers, std::int64_t vocab) {
  return llama(layers, 64, 4, 4, 256, vocab);
}

TEST(Split, AtSharesGoesOnUntilAShareIsExceeded) {
  EXPECT_EQ(split_at_shares(weighing(16, 4 * (4 * 64 + 3 * 256)), plan_of(2, 1)), (Layers{11, 5}));  // of 20
  EXPECT_EQ(split_at_shares(weighing(16, 3 * (4 * 64 + 3 * 256)), plan_of(2, 1)), (Layers{10, 6}));  // of 19
  EXPECT_EQ(split_at_shares(weighing(4, 8 * (4 * 64 + 3 * 256)), plan_of(2, 1)), Layers{});  // head on rank 0
}

// Llama's 13 B and 65 B with a vocabulary of 128,000: the results of Scaling's pipe_partition_balanced.
TEST(Split, ByParametersFillsEachStageUpToTheHeaviest) {
  const Model small = llama(40, 5120, 40, 40, 13824, 128000);
  EXPECT_EQ(split_by_parameters(small, plan_of(2, 1)), (Layers{20, 20}));
  EXPECT_EQ(split_by_parameters(small, plan_of(4, 1)), (Layers{9, 11, 11, 9}));
  const Model large = llama(80, 8192, 64, 64, 22016, 128000);
  EXPECT_EQ(split_by_parameters(large, plan_of(8, 1)), (Layers{9, 11, 11, 11, 11, 11, 11, 5}));
  EXPECT_EQ(split_by_parameters(llama(4, 64, 4, 4, 160, 64000), plan_of(4, 1)), Layers{});  // head alone
}

}  // namespace
}  // namespace rehearse
