// Uneven stages: Megatron-LM's ways to say them, and the split by cost.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/balance.h"
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

double heaviest(const Layers& split, const std::vector<double>& layers, double first, double last) {
  double most = 0;
  auto next = layers.begin();
  for (std::size_t stage = 0; stage < split.size(); ++stage) {
    double cost = (stage == 0 ? first : 0) + (stage + 1 == split.size() ? last : 0);
    for (int i = 0; i < split[stage]; ++i) cost += *next++;
    most = std::max(most, cost);
  }
  return most;
}

// Tries every split.
double lightest(const std::vector<double>& layers, double first, double last, std::size_t stages,
                Layers& split) {
  const int left = static_cast<int>(layers.size()) - std::accumulate(split.begin(), split.end(), 0);
  double best = std::numeric_limits<double>::infinity();
  if (split.size() + 1 == stages) {
    split.push_back(left);
    best = heaviest(split, layers, first, last);
    split.pop_back();
    return best;
  }
  for (int take = 0; take <= left; ++take) {
    split.push_back(take);
    best = std::min(best, lightest(layers, first, last, stages, split));
    split.pop_back();
  }
  return best;
}

RC_GTEST_PROP(BalancedSplit, HasTheLightestHeaviestStageOfAllSplits, ()) {
  const auto numbers =
      *rc::gen::container<std::vector<int>>(*rc::gen::inRange(0, 9), rc::gen::inRange(0, 20));
  const std::vector<double> layers(numbers.begin(), numbers.end());
  const double first = *rc::gen::inRange(0, 40), last = *rc::gen::inRange(0, 40);
  const int stages = *rc::gen::inRange(1, 5);
  const Layers split = balanced_split(layers, first, last, stages);
  RC_ASSERT(split.size() == static_cast<std::size_t>(stages));
  RC_ASSERT(std::accumulate(split.begin(), split.end(), std::size_t{0}) == layers.size());
  Layers none;
  RC_ASSERT(heaviest(split, layers, first, last) ==
            lightest(layers, first, last, static_cast<std::size_t>(stages), none));
}

TEST(BalancedSplit, OfEqualLayersIsEven) {
  EXPECT_EQ(balanced_split(std::vector<double>(8, 1.0), 0, 0, 4), (Layers{2, 2, 2, 2}));
}

TEST(BalancedOverRanks, GivesTheRankWithTheHeadFewerLayersInAll) {
  const LayerCosts costs{std::vector<double>(13, 1.0), 0, 2.5};
  const auto looping = [](int stage) { return stage % 4; };
  const Layers split = balanced_over_ranks(costs, filled_split(13, 16), looping);
  std::vector<int> ranks(4, 0);
  for (int s = 0; s < 16; ++s) ranks[static_cast<std::size_t>(s % 4)] += split[static_cast<std::size_t>(s)];
  EXPECT_EQ(ranks, (Layers{4, 4, 4, 1}));
}

RC_GTEST_PROP(BalancedOverRanks, IsNoHeavierThanTheSplitItStartsFrom, ()) {
  const auto numbers =
      *rc::gen::container<std::vector<int>>(*rc::gen::inRange(1, 24), rc::gen::inRange(1, 20));
  LayerCosts costs{{numbers.begin(), numbers.end()}, 0, 0};
  costs.first = *rc::gen::inRange(0, 40);
  costs.last = *rc::gen::inRange(0, 40);
  const int ranks = *rc::gen::inRange(1, 5), chunks = *rc::gen::inRange(1, 4);
  const auto rank_of = [&](int stage) { return stage % ranks; };
  const auto most = [&](const Layers& split) {
    std::vector<double> sums(static_cast<std::size_t>(ranks), 0);
    std::size_t layer = 0;
    for (int s = 0; s < ranks * chunks; ++s) {
      double& sum = sums[static_cast<std::size_t>(rank_of(s))];
      for (int i = 0; i < split[static_cast<std::size_t>(s)]; ++i) sum += costs.layers[layer++];
      if (s == 0) sum += costs.first;
      if (s + 1 == ranks * chunks) sum += costs.last;
    }
    RC_ASSERT(layer == costs.layers.size());
    return *std::ranges::max_element(sums);
  };
  const Layers filled = filled_split(static_cast<int>(numbers.size()), ranks * chunks);
  RC_ASSERT(most(balanced_over_ranks(costs, filled, rank_of)) <= most(filled) * (1 + 1e-9));
  const Layers by_stage = balanced_split(costs, ranks * chunks);
  RC_ASSERT(most(balanced_over_ranks(costs, by_stage, rank_of)) <= most(by_stage) * (1 + 1e-9));
}

TEST(FilledSplit, TakesAnEvenShareRoundedUp) {
  EXPECT_EQ(filled_split(61, 16), (Layers{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1}));
  EXPECT_EQ(filled_split(8, 4), (Layers{2, 2, 2, 2}));
  EXPECT_EQ(filled_split(2, 4), (Layers{1, 1, 0, 0}));
}

TEST(BalancedSplit, GivesAHeavyHeadFewerLayers) {
  EXPECT_EQ(balanced_split(std::vector<double>(10, 1.0), 0, 2, 4), (Layers{3, 3, 3, 1}));
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

// Llama's 13 B and 65 B with a vocabulary of 128,000: what pipe_partition_balanced of Scaling gives.
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
