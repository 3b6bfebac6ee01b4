// Which rank steps which parameters where each belongs to one?
#include "plan/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "plan/sharding.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;

Plan owners_plan(int dp) {
  Plan plan;
  plan.framework = Framework::internevo;
  plan.zero = 1;
  plan.dp = plan.global_batch = dp;
  plan.seq = 32;
  return plan;
}

TEST(Owners, TakeTheLargestFirstEachToTheRankThatHasLeast) {
  EXPECT_THAT(owned_elements({5, 3, 3, 2}, 2), ElementsAre(7, 6));
  EXPECT_THAT(owned_elements({2, 3, 5, 3}, 2), ElementsAre(7, 6));
  EXPECT_THAT(owned_elements({4, 4, 1}, 2), ElementsAre(5, 4));  // of two that have as much the first
}

TEST(Owners, BeyondTheNumberOfParametersHaveNothing) {
  EXPECT_THAT(owned_elements({3, 4}, 4), ElementsAre(4, 3, 0, 0));
  EXPECT_THAT(owned_elements({}, 2), ElementsAre(0, 0));
}

// The last parameter of the busiest went to the emptiest (Graham 1969).
RC_GTEST_PROP(Owners, HaveAllParametersAndTheBusiestAtLeastAnEvenShare, ()) {
  const int ranks = *rc::gen::inRange(1, 40);
  std::vector<double> parameters;
  for (const int elements : *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000000)))
    parameters.push_back(elements);
  const std::vector<double> owned = owned_elements(parameters, ranks);
  const double sum = std::accumulate(parameters.begin(), parameters.end(), 0.0);
  const double busiest = std::ranges::max(owned);
  RC_ASSERT(owned.size() == static_cast<std::size_t>(ranks));
  RC_ASSERT(std::accumulate(owned.begin(), owned.end(), 0.0) == sum);
  RC_ASSERT(busiest >= sum / ranks);
  const double largest = parameters.empty() ? 0 : std::ranges::max(parameters);
  RC_ASSERT(busiest <= sum / ranks + largest);
}

// Tables of 20,480 elements; gate, up and down of 10,240; queries, keys and values of 8,192; their output of
// 4,096; norms of 64. Ranks 0 and 1 take a table, then a third matrix each; the last norms go to them.
TEST(Owners, OfASmallLlamaByHand) {
  const Case c{llama(2, 64, 4, 2, 160, 320), owners_plan(4)};
  const Work work = make_work(c.model, c.plan);
  EXPECT_THAT(owned_elements(work, c.plan, 0), ElementsAre(20480 + 10240 + 3 * 64, 20480 + 10240 + 2 * 64,
                                                           2 * 10240 + 8192 + 4096, 2 * 10240 + 8192 + 4096));
  EXPECT_EQ(stepped_dense(work, c.plan, 0), 32768);
  EXPECT_EQ(stepped_experts(work, c.plan, 0), 0);
}

TEST(Owners, KeepGateAndUpApart) {
  Case c{llama(1, 64, 4, 2, 160, 320), owners_plan(64)};
  const Work gated = make_work(c.model, c.plan);
  const auto count = [&c](const Work& work, double elements) {
    return std::ranges::count(owned_elements(work, c.plan, 0), elements);
  };
  EXPECT_EQ(count(gated, 64 * 160), 3);
  EXPECT_EQ(count(gated, 2 * 64 * 160), 2);  // the tables of 320 tokens
  c.model.gated_mlp = false;
  EXPECT_EQ(count(make_work(c.model, c.plan), 64 * 160), 2);
}

TEST(Owners, OfEachStageAreFoundByThemselves) {
  Case c{llama(2, 64, 4, 2, 160, 320), owners_plan(4)};
  c.plan.pp = 2;
  const Work work = make_work(c.model, c.plan);
  // The table, gate, up and down first; then the attention's two matrices to those that have least, and all
  // norms to the last.
  EXPECT_THAT(owned_elements(work, c.plan, 0),
              ElementsAre(20480, 10240 + 8192, 10240 + 4096, 10240 + 2 * 64));
  EXPECT_THAT(owned_elements(work, c.plan, 1),
              ElementsAre(20480, 10240 + 8192, 10240 + 4096, 10240 + 3 * 64));
}

TEST(Owners, DivideNothingWithoutZeroAndEvenlyElsewhere) {
  Case c{llama(2, 64, 4, 2, 160, 320), owners_plan(4)};
  const double all = 127296;
  const auto stepped = [&c] { return stepped_dense(make_work(c.model, c.plan), c.plan, 0); };
  c.plan.framework = Framework::deepspeed;
  EXPECT_EQ(stepped(), all / 4);
  c.plan.framework = Framework::internevo;
  c.plan.zero = 0;
  EXPECT_EQ(stepped(), all);
}

TEST(Owners, LeaveExpertsDividedEvenly) {
  Case c{llama(2, 64, 4, 2, 160, 320), owners_plan(4)};
  c.model.experts = Experts{};
  c.model.experts->count = 4;
  c.model.experts->per_token = 1;
  c.model.experts->ffn_hidden = 32;
  const Work work = make_work(c.model, c.plan);
  const double experts = 2 * 4 * 3 * 64 * 32;
  EXPECT_EQ(stepped_experts(work, c.plan, 0), experts / 4);
  const std::vector<double> owned = owned_elements(work, c.plan, 0);
  EXPECT_EQ(std::accumulate(owned.begin(), owned.end(), 0.0), work.parameters(0) - experts);
}

TEST(Owners, AreTheRanksOfAGroupOfSeveralUnderZero1) {
  Plan plan = owners_plan(8);
  EXPECT_TRUE(owns_parameters(plan));
  EXPECT_FALSE(scatters_gradients(plan));
  plan.zero_shard = 4;  // two groups: scattered in each, summed across
  EXPECT_TRUE(owns_parameters(plan));
  EXPECT_TRUE(scatters_gradients(plan));
  plan.zero_shard = 1;
  EXPECT_FALSE(owns_parameters(plan));
  plan = owners_plan(8);
  plan.zero = 0;
  EXPECT_FALSE(owns_parameters(plan));
  EXPECT_FALSE(scatters_gradients(plan));
  plan = owners_plan(8);
  plan.framework = Framework::deepspeed;
  EXPECT_FALSE(owns_parameters(plan));
  EXPECT_TRUE(scatters_gradients(plan));
}

}  // namespace
}  // namespace rehearse
