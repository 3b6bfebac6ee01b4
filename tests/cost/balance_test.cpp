// Layers that are split by their cost: the heaviest stage is as light as any split makes it.
#include "cost/balance.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace rehearse {
namespace {

using Layers = std::vector<int>;

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

}  // namespace
}  // namespace rehearse
