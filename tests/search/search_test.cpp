#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <utility>

#include "cases.h"
#include "run/in_child.h"
#include "run/step_time.h"
#include "sanitized.h"
#include "search/family.h"

namespace rehearse {

namespace {

constexpr const char* kTakesMinutes = "takes minutes where every access is looked at";

std::vector<double> in_children(std::size_t count, const std::function<double(std::size_t)>& run) {
  std::vector<double> results;
  for (std::size_t i = 0; i < count; ++i) {
    const auto result = in_child([&] { return std::vector{run(i)}; });
    results.push_back(result ? result->front() : std::nan(""));
  }
  return results;
}

std::vector<Plan> larger_groups(const Plan& plan, const Model& model) {
  std::vector<Plan> variants;
  if (plan.vpp == 1 || plan.schedule != ScheduleName::interleaved) return variants;
  for (const auto group : {2 * plan.pp, static_cast<int>(plan.microbatches())}) {
    Plan variant = plan;
    variant.microbatch_group = group;
    if (group > plan.pp && broken_rules(variant, model, plan.gpus()).empty()) variants.push_back(variant);
    if (group >= plan.microbatches()) break;
  }
  return variants;
}

// A small space: some plans of a case. In every third, GPUs share NICs. In every fourth, nodes meet on links
// of the fabric, and in every fifth plans lie unevenly in nodes: then every rank is simulated.
SearchCase small_space(std::uint32_t seed) {
  SearchCase space = search_case(seed);
  std::mt19937 random(seed);
  Node& node = space.experiment.cluster.node;
  node.gpus = 2 << random() % 3;
  if (seed % 5 == 0) node.gpus = 6;
  node.nics = seed % 3 == 0 ? node.gpus / 2 : node.gpus;
  if (seed % 4 == 0) space.experiment.cluster.fabric = read_cluster("selene").fabric;
  if (random() % 2 == 0) space.experiment.cluster.gpu.memory_bytes = 1e12;
  constexpr std::size_t kPlans = 10;
  std::vector<Plan> plans;
  for (const Plan& plan : space.plans)
    if (random() % space.plans.size() < kPlans) plans.push_back(plan);
  space.plans = std::move(plans);
  return space;
}

// Every plan that fits and its variants, each bounded and simulated by itself; best first.
class Simulated {
 public:
  explicit Simulated(const SearchCase& space) : space_(space) {
    for (std::size_t i = 0; i < space.plans.size(); ++i) {
      if (!simulate(i, 0, space.plans[i])) continue;
      for (const Plan& variant : larger_groups(space.plans[i], space.experiment.model))
        simulate(i, variant.microbatch_group, variant);
    }
    std::ranges::sort(found_, {}, [](const FoundPlan& each) {
      return std::tuple(each.step_time_s, each.needed_bytes, each.index, each.group);
    });
  }

  // One place for each plan given.
  std::vector<FoundPlan> best(std::size_t top) const {
    std::vector<FoundPlan> best;
    for (const FoundPlan& plan : found_)
      if (std::ranges::find(best, plan.index, &FoundPlan::index) == best.end()) best.push_back(plan);
    best.resize(std::min(top, best.size()));
    return best;
  }

  std::vector<FoundPlan> front() const {
    std::vector<FoundPlan> front;
    for (const FoundPlan& plan : found_)
      if (plan.step_time_s <= kFrontSteps * found_.front().step_time_s &&
          (front.empty() || plan.needed_bytes < front.back().needed_bytes))
        front.push_back(plan);
    return front;
  }

  std::size_t size() const { return found_.size(); }

 private:
  bool simulate(std::size_t index, int group, const Plan& plan) {
    Experiment experiment = space_.experiment;
    experiment.plan = plan;
    KernelTimes kernels(experiment.profile, experiment.cluster.gpu, to_string(plan.precision));
    const PlanBounds bounds = Family(experiment, kernels).bounds(plan);
    if (!bounds.leaves_headroom) return false;
    const double seconds = in_children(1, [&](std::size_t) { return step_time_s(experiment); }).front();
    EXPECT_LE(bounds.least_s, seconds) << index;
    EXPECT_LE(least_simulated_s(experiment, &kernels), seconds) << index;
    if (group == 0) needed_of_plan_ = bounds.needed_bytes;
    EXPECT_GE(bounds.needed_bytes, needed_of_plan_) << index << ", group " << group;
    found_.push_back({index, group, seconds, bounds.needed_bytes});
    return true;
  }

  const SearchCase& space_;
  double needed_of_plan_ = 0;
  std::vector<FoundPlan> found_;
};

SearchOptions simulating(const SearchCase& space, std::size_t top, int threads) {
  return {.top = top,
          .threads = threads,
          .in_processes = in_children,
          .larger_groups = [&space](std::size_t index) {
            return larger_groups(space.plans[index], space.experiment.model);
          }};
}

SearchCase by_reference(std::uint32_t seed) {
  SearchCase space = search_case(seed);
  space.experiment.engine = Engine::reference;
  return space;
}

class SmallSpace : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(SmallSpace, ListIsThatOfSimulatingEveryPlanWhateverTopAndThreads) {
  if (kThreadSanitizer) GTEST_SKIP() << kTakesMinutes;
  const SearchCase space = small_space(GetParam());
  const Simulated every(space);
  for (const auto& [top, threads] : {std::pair<std::size_t, int>{1, 1}, {5, 2}, {20, 1}}) {
    const SearchResult result = search(space.experiment, space.plans, simulating(space, top, threads));
    EXPECT_EQ(result.best, every.best(top)) << top;
    EXPECT_EQ(result.pareto, every.front()) << top;
    EXPECT_EQ(result.proven(), result.best.size());
    EXPECT_EQ(result.run + result.pruned + result.does_not_fit, space.plans.size() + result.variants);
  }
}

INSTANTIATE_TEST_SUITE_P(Of30, SmallSpace, ::testing::Range(1u, 31u));

TEST(Search, CountsTheSameOnAnyNumberOfThreads) {
  const SearchCase space = small_space(4);
  const SearchResult one = search(space.experiment, space.plans, simulating(space, 3, 1));
  const SearchResult four = search(space.experiment, space.plans, simulating(space, 3, 4));
  EXPECT_EQ(one.best, four.best);
  EXPECT_EQ(one.pruned, four.pruned);
  EXPECT_EQ(one.referred, four.referred);
  EXPECT_EQ(one.run, four.run);
}

// Wherever it is stopped, the places that it calls proven are those of the whole search.
TEST(Search, ProvesPlacesBeforeItEnds) {
  const SearchCase space = small_space(5);
  const SearchResult whole = search(space.experiment, space.plans, simulating(space, 5, 1));
  std::size_t proven = 0;
  bool is_partly_proven = false;
  for (std::size_t allowed = 0; proven < whole.best.size(); ++allowed) {
    ASSERT_LE(allowed, whole.run);
    std::size_t left = allowed;
    bool is_over = false;
    SearchOptions options = simulating(space, 5, 1);
    options.is_stopped = [&is_over] { return is_over; };
    options.in_processes = [&](std::size_t count, const std::function<double(std::size_t)>& run) {
      std::vector<double> results = in_children(std::min(count, left), run);
      left -= results.size();
      is_over = results.size() < count || left == 0;
      results.resize(count, std::nan(""));
      return results;
    };
    const SearchResult part = search(space.experiment, space.plans, options);
    EXPECT_EQ(part.has_only_bounds, allowed == 0);
    ASSERT_GE(part.proven(), proven);
    proven = part.proven();
    is_partly_proven |= proven > 0 && proven < whole.best.size();
    for (std::size_t i = 0; i < proven; ++i) EXPECT_EQ(part.best[i], whole.best[i]) << allowed;
  }
  EXPECT_TRUE(is_partly_proven);
}

class SearchOf : public ::testing::TestWithParam<std::uint32_t> {};

// Every plan run by itself and judged by its own report.
struct Judged {
  FoundPlan found;
  Footprint fullest;
};

std::vector<Judged> each_by_itself(const SearchCase& given) {
  Experiment experiment = given.experiment;
  experiment.with_band = false;
  std::vector<Judged> judged;
  for (std::size_t i = 0; i < given.plans.size(); ++i) {
    experiment.plan = given.plans[i];
    const Report report = run_iteration(experiment).report;
    const Footprint gpu = fullest_gpu(report);
    judged.push_back({{i, 0, report.step_time_s, gpu.needed_bytes()}, gpu});
  }
  return judged;
}

TEST_P(SearchOf, FindsTheBestThatFitWhereContextAndBuffersDecide) {
  if (kThreadSanitizer) GTEST_SKIP() << kTakesMinutes;
  SearchCase given = by_reference(GetParam());
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
  const SearchResult result = search(given.experiment, given.plans, {.top = 5});
  EXPECT_EQ(result.does_not_fit, given.plans.size() - judged.size());
  ASSERT_EQ(result.best.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(result.best[i], judged[i].found);
  std::vector<FoundPlan> front;
  for (const Judged& each : judged)
    if (each.found.step_time_s <= kFrontSteps * judged.front().found.step_time_s &&
        (front.empty() || each.found.needed_bytes < front.back().needed_bytes))
      front.push_back(each.found);
  EXPECT_EQ(result.pareto, front);
}

INSTANTIATE_TEST_SUITE_P(SmallSpaces, SearchOf, ::testing::Range(1u, 4u));

TEST(Search, BoundsRuleOutMostPlans) {
  const SearchCase given = by_reference(3);
  const SearchResult result = search(given.experiment, given.plans, {.top = 1});
  EXPECT_GT(result.pruned, result.run);
}

TEST(Search, WithoutMemoryNothingIsFound) {
  SearchCase given = by_reference(1);
  given.experiment.cluster.gpu.memory_bytes = 1e6;
  const SearchResult result = search(given.experiment, given.plans, {.top = 5, .threads = 2});
  EXPECT_TRUE(result.best.empty());
  EXPECT_TRUE(result.pareto.empty());
  EXPECT_EQ(result.does_not_fit, given.plans.size());
}

TEST(Search, FindsPlansThatLeaveTheHeadroom) {
  SearchCase given = by_reference(1);
  const double capacity = given.experiment.cluster.gpu.memory_bytes;
  std::size_t fitting = 0;
  for (const double share : {0.0, 0.2, 0.5}) {
    given.experiment.headroom = {.share = share};
    const SearchResult result = search(given.experiment, given.plans, {.top = given.plans.size()});
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
