#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "cases.h"
#include "sanitized.h"

namespace rehearse {

bool operator==(const FoundPlan& a, const FoundPlan& b) {
  return a.index == b.index && a.step_time_s == b.step_time_s && a.needed_bytes == b.needed_bytes;
}

namespace {

// One space is enough to see two threads that search it.
constexpr const char* kTakesMinutes = "takes minutes where every access is looked at";

class SearchOf : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(SearchOf, PruningLosesNothingThatRunningEveryPlanFinds) {
  if (kThreadSanitizer) GTEST_SKIP() << kTakesMinutes;
  const SearchCase given = search_case(GetParam());
  for (const std::size_t top : {1u, 5u, 40u}) {
    const SearchResult pruned = search(given.experiment, given.plans, {top, 1, true});
    const SearchResult all = search(given.experiment, given.plans, {top, 1, false});
    EXPECT_EQ(pruned.best, all.best);
    EXPECT_EQ(pruned.pareto, all.pareto);
    EXPECT_EQ(pruned.does_not_fit, all.does_not_fit);
    EXPECT_EQ(pruned.pruned + pruned.run, all.run);
    EXPECT_EQ(all.run + all.does_not_fit, given.plans.size());
  }
}

TEST_P(SearchOf, ThreadsChangeNothing) {
  if (kThreadSanitizer && GetParam() != 1) GTEST_SKIP() << kTakesMinutes;
  const SearchCase given = search_case(GetParam());
  const SearchResult one = search(given.experiment, given.plans, {3, 1, true});
  const SearchResult four = search(given.experiment, given.plans, {3, 4, true});
  EXPECT_EQ(one.best, four.best);
  EXPECT_EQ(one.pareto, four.pareto);
  EXPECT_EQ(one.pruned, four.pruned);
  EXPECT_EQ(one.run, four.run);
}

TEST_P(SearchOf, TheFrontFallsInMemoryAsTimeRises) {
  if (kThreadSanitizer) GTEST_SKIP() << kTakesMinutes;
  const SearchCase given = search_case(GetParam());
  const SearchResult result = search(given.experiment, given.plans, {1, 1, true});
  if (result.best.empty()) return;
  EXPECT_EQ(result.pareto.front().index, result.best.front().index);
  for (std::size_t i = 1; i < result.pareto.size(); ++i) {
    EXPECT_GT(result.pareto[i].step_time_s, result.pareto[i - 1].step_time_s);
    EXPECT_LT(result.pareto[i].needed_bytes, result.pareto[i - 1].needed_bytes);
  }
}

// Every plan run by itself and judged by its own report.
struct Judged {
  FoundPlan found;
  Footprint fullest;
};

std::vector<Judged> each_by_itself(const SearchCase& given) {
  Experiment experiment = given.experiment;
  experiment.engine = Engine::reference;
  experiment.with_band = false;
  std::vector<Judged> judged;
  for (std::size_t i = 0; i < given.plans.size(); ++i) {
    experiment.plan = given.plans[i];
    const Report report = run_iteration(experiment).report;
    const Footprint gpu = fullest_gpu(report);
    judged.push_back({{i, report.step_time_s, gpu.needed_bytes()}, gpu});
  }
  return judged;
}

TEST_P(SearchOf, FindsTheBestThatFitWhereContextAndBuffersDecide) {
  if (kThreadSanitizer) GTEST_SKIP() << kTakesMinutes;
  SearchCase given = search_case(GetParam());
  std::vector<Judged> judged = each_by_itself(given);
  std::ranges::sort(judged, {}, [](const Judged& each) { return each.fullest.needed_bytes(); });
  const double capacity = judged[judged.size() / 2].fullest.needed_bytes();
  given.experiment.cluster.gpu.memory_bytes = capacity;
  given.experiment.headroom = {.share = 0};
  EXPECT_TRUE(std::ranges::any_of(judged, [&](const Judged& each) {
    return each.fullest.peak_bytes <= capacity && each.fullest.needed_bytes() > capacity;
  })) << "nothing was decided by them";
  std::erase_if(judged, [&](const Judged& each) { return each.fullest.needed_bytes() > capacity; });
  std::ranges::sort(judged, {}, [](const Judged& each) {
    return std::tuple(each.found.step_time_s, each.found.needed_bytes, each.found.index);
  });
  const SearchResult result = search(given.experiment, given.plans, {5, 1, true});
  EXPECT_EQ(result.does_not_fit, given.plans.size() - judged.size());
  ASSERT_EQ(result.best.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(result.best[i], judged[i].found);
  std::vector<FoundPlan> front;
  for (const Judged& each : judged)
    if (front.empty() || each.found.needed_bytes < front.back().needed_bytes) front.push_back(each.found);
  EXPECT_EQ(result.pareto, front);
}

INSTANTIATE_TEST_SUITE_P(SmallSpaces, SearchOf, ::testing::Range(1u, 9u));

TEST(Search, BoundsRuleOutMostPlans) {
  const SearchCase given = search_case(3);
  const SearchResult result = search(given.experiment, given.plans, {1, 1, true});
  EXPECT_GT(result.pruned, result.run);
}

TEST(Search, WithoutMemoryNothingIsFound) {
  SearchCase given = search_case(1);
  given.experiment.cluster.gpu.memory_bytes = 1e6;
  const SearchResult result = search(given.experiment, given.plans, {5, 2, true});
  EXPECT_TRUE(result.best.empty());
  EXPECT_TRUE(result.pareto.empty());
  EXPECT_EQ(result.does_not_fit, given.plans.size());
}

TEST(Search, FindsPlansThatLeaveTheHeadroom) {
  SearchCase given = search_case(1);
  const double capacity = given.experiment.cluster.gpu.memory_bytes;
  std::size_t fitting = 0;
  for (const double share : {0.0, 0.2, 0.5}) {
    given.experiment.headroom = {.share = share};
    const SearchResult result = search(given.experiment, given.plans, {given.plans.size(), 1, false});
    for (const FoundPlan& found : result.best) EXPECT_LE(found.needed_bytes, (1 - share) * capacity);
    if (share == 0) fitting = result.best.size();
    EXPECT_EQ(result.below_headroom, fitting - result.best.size());
    EXPECT_EQ(result.does_not_fit, given.plans.size() - result.best.size());
  }
}

TEST(Search, RefusesWhereItsBoundsDoNotHold) {
  SearchCase given = search_case(1);
  given.plans[1].sync_step = false;
  EXPECT_THROW(search(given.experiment, given.plans, {}), InputError);
  given = search_case(1);
  given.experiment.conditions.jitter.compute = 0.1;
  EXPECT_THROW(search(given.experiment, given.plans, {}), InputError);
  given = search_case(1);
  given.experiment.stage_nodes.kind_of_rank = {0};
  EXPECT_THROW(search(given.experiment, given.plans, {}), InputError) << "GPUs may have less memory";
}

}  // namespace
}  // namespace rehearse
