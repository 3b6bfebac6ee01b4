#include "search/bounds.h"

#include <gtest/gtest.h>

#include "cases.h"
#include "search/family.h"

namespace rehearse {
namespace {

OpTimes even_times(const Plan& plan, double forward_s, double backward_s, double step_s) {
  StageTimes stage;
  stage.forward.compute = forward_s;
  stage.backward_input.compute = stage.backward_weight.compute = backward_s / 2;
  OpTimes times;
  times.stages.assign(static_cast<std::size_t>(plan.stages()), stage);
  times.step.assign(static_cast<std::size_t>(plan.pp), TimeParts{});
  for (TimeParts& step : times.step) step.optimizer = step_s;
  return times;
}

Plan pipeline(int pp, int vpp, ScheduleName schedule, int microbatches) {
  Plan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.schedule = schedule;
  plan.global_batch = microbatches;
  return plan;
}

// (m + p - 1)(F + B) + step: Narayanan et al. 2021, section 2.2.1.
TEST(LeastStepTime, IsTheClosedFormOf1F1BWithEqualStages) {
  for (const int p : {1, 2, 4, 16}) {
    for (const int m : {1, 4, 32, 500}) {
      const Plan plan = pipeline(p, 1, ScheduleName::one_f_one_b, m);
      const double expected = (m + p - 1) * (0.25 + 0.5) + 0.125;
      EXPECT_NEAR(least_step_time(plan, even_times(plan, 0.25, 0.5, 0.125)), expected, 2e-9 * expected);
    }
  }
}

// Interleaved: m v (f + b) and p - 1 chunks to fill and to drain, each 1/v of a stage.
TEST(LeastStepTime, IsTheClosedFormOfInterleaving) {
  const Plan plan = pipeline(4, 3, ScheduleName::interleaved, 16);
  const double expected = (16 * 3 + 3) * (1 + 2) + 0.5;
  EXPECT_NEAR(least_step_time(plan, even_times(plan, 1, 2, 0.5)), expected, 2e-9 * expected);
}

// ZB-H2 reaches it but for the step: fill, m (F + I + W), no bubble more (Qi et al. 2023, section 2.3).
TEST(LeastStepTime, LetsSplitBackwardsFillTheBubble) {
  const Plan plan = pipeline(4, 1, ScheduleName::zb_h2, 32);
  const double expected = 3 + 32 * 3 + 0.5;
  EXPECT_NEAR(least_step_time(plan, even_times(plan, 1, 2, 0.5)), expected, 2e-9 * expected);
}

TEST(LeastStepTime, FollowsTheHeaviestStage) {
  const Plan plan = pipeline(3, 1, ScheduleName::one_f_one_b, 10);
  OpTimes times = even_times(plan, 1, 2, 0);
  times.stages[1].forward.compute = 5;
  EXPECT_NEAR(least_step_time(plan, times), 1 + 10 * (5 + 2) + 2, 1e-6);
}

constexpr double kRoomForAll = 1e12;

// A space of plans, and the family that caches results for them.
struct Space {
  SearchCase given;
  KernelTimes kernels;
  Family family;
  explicit Space(std::uint32_t seed)
      : given(search_case(seed)),
        kernels(given.experiment.profile, given.experiment.cluster.gpu, "bf16"),
        family(given.experiment, kernels) {
    given.experiment.engine = Engine::reference;
  }
};

TEST(Bounds, NeverExceedTheStepTimeAndMemoryIsExact) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    Space space(seed);
    Experiment& experiment = space.given.experiment;
    experiment.cluster.gpu.memory_bytes = kRoomForAll;
    double tightest = 0;
    for (std::size_t i = 0; i < space.given.plans.size(); i += 3) {
      experiment.plan = space.given.plans[i];
      const PlanBounds bounds = space.family.bounds(experiment.plan);
      const Report report = run_iteration(experiment).report;
      EXPECT_LE(bounds.least_s, report.step_time_s) << to_string(experiment.plan.schedule);
      EXPECT_DOUBLE_EQ(bounds.needed_bytes, fullest_gpu(report).needed_bytes())
          << to_string(experiment.plan.schedule) << " pp " << experiment.plan.pp;
      tightest = std::max(tightest, bounds.least_s / report.step_time_s);
    }
    EXPECT_GT(tightest, 0.9) << "a bound that is never near prunes nothing";
  }
}

TEST(Bounds, AreTheSameWhateverTheFamilySharedBefore) {
  for (const std::uint32_t seed : {1u, 2u, 5u}) {
    SearchCase given = search_case(seed);
    const Experiment& experiment = given.experiment;
    KernelTimes kernels(experiment.profile, experiment.cluster.gpu, "bf16");
    Family shared(experiment, kernels);
    for (std::size_t i = 0; i < given.plans.size(); i += 5) {
      KernelTimes own_kernels(experiment.profile, experiment.cluster.gpu, "bf16");
      const PlanBounds own = Family(experiment, own_kernels).bounds(given.plans[i]);
      const PlanBounds in_family = shared.bounds(given.plans[i]);
      EXPECT_EQ(own.least_s, in_family.least_s);
      EXPECT_EQ(own.needed_bytes, in_family.needed_bytes);
      EXPECT_EQ(own.fits, in_family.fits);
    }
  }
}

// To the byte, whatever the family shared before.
TEST(Bounds, FitWhereTheReportDoes) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    Space space(seed);
    Experiment& experiment = space.given.experiment;
    for (std::size_t i = 0; i < space.given.plans.size(); i += 3) {
      experiment.plan = space.given.plans[i];
      const double needed = fullest_gpu(run_iteration(experiment).report).needed_bytes();
      experiment.cluster.gpu.memory_bytes = needed;
      EXPECT_TRUE(space.family.bounds(experiment.plan).fits) << i;
      experiment.cluster.gpu.memory_bytes = needed - 1;
      EXPECT_FALSE(space.family.bounds(experiment.plan).fits) << i;
    }
  }
}

TEST(Bounds, CountWhatActivationOffloadSaves) {
  SearchCase given = search_case(6);
  Experiment& experiment = given.experiment;
  experiment.engine = Engine::reference;
  experiment.cluster.gpu.memory_bytes = kRoomForAll;
  KernelTimes kernels(experiment.profile, experiment.cluster.gpu, "bf16");
  int tried = 0;
  for (const Plan& plan : given.plans) {
    experiment.plan = plan;
    experiment.plan.offload = Offload::activations;
    if (!broken_rules(experiment.plan, experiment.model, 8).empty() || ++tried > 20) continue;
    EXPECT_DOUBLE_EQ(Family(experiment, kernels).bounds(experiment.plan).needed_bytes,
                     fullest_gpu(run_iteration(experiment).report).needed_bytes());
  }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace rehearse
