// A step of which only the beginning is simulated equals the whole one.
#include "run/long_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_child.h"
#include "memory/sizing.h"
#include "model/read.h"
#include "plan/schedules.h"
#include "run/size.h"
#include "run/steady.h"
#include "schedule/orders.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

// Stages are unlike: the first has the embedding, the last has the head.
Experiment pipeline(ScheduleName schedule, int pp, int vpp, std::int64_t microbatches) {
  Experiment experiment;
  experiment.model = read_model("llama3-8b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile("h100-sxm");
  experiment.engine = Engine::reference;
  Plan& plan = experiment.plan;
  plan.schedule = schedule;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.dp = 2;
  plan.tp = 2;
  plan.global_batch = microbatches * plan.dp;
  plan.seq = 512;
  plan.sequence_parallel = true;
  plan.overlap_p2p = traits(schedule).overlaps_p2p;
  return experiment;
}

void add(std::vector<double>& all, const TimeShares& time) {
  all.insert(all.end(),
             {time.compute, time.recompute, time.optimizer, time.bubble, time.exposed_tp, time.exposed_pp,
              time.exposed_dp, time.exposed_cp, time.exposed_ep, time.exposed_offload});
}

// First whether it was extrapolated; then every figure of the report: seconds, counts and bytes.
std::vector<double> figures(const Report& report) {
  std::vector<double> all = {report.extrapolation ? 1.0 : 0.0,
                             report.step_time_s,
                             report.bubble_mean,
                             report.bubble_worst,
                             static_cast<double>(report.bubble_worst_rank),
                             report.bubble_ideal,
                             report.tokens_per_s,
                             report.mfu,
                             report.hfu,
                             report.uncertainty,
                             static_cast<double>(report.critical_rank)};
  all.insert(all.end(), report.busy_s.begin(), report.busy_s.end());
  add(all, report.time);
  add(all, report.mean_time);
  for (const RankShares& rank : report.ranks) add(all, rank.time);
  for (const CommunicationLine& line : report.communication)
    all.insert(all.end(),
               {static_cast<double>(line.calls), line.bytes_per_rank, line.busy_s, line.exposed_s});
  for (const RankMemory& rank : report.memory) {
    all.insert(all.end(), {rank.parameters_bytes, rank.gradients_bytes, rank.optimizer_bytes,
                           rank.activations_bytes, rank.working_bytes, rank.logits_bytes, rank.buffers_bytes,
                           rank.peak_bytes, rank.reserved_bytes.value_or(0), rank.peak_time_s,
                           static_cast<double>(rank.peak_microbatch)});
    for (const LiveMicrobatches& live : rank.alive)
      all.insert(all.end(), live.microbatches.begin(), live.microbatches.end());
  }
  return all;
}

// SimGrid ends a transfer up to a nanosecond early (precision/timing), and rounds times in another order.
constexpr double kSimGridRounding_s = 5e-9;

void expect_equal(Experiment experiment, bool is_shortened = true) {
  const double rounding = experiment.engine == Engine::simgrid ? kSimGridRounding_s : 0;
  const auto in_process = [&] { return in_child([&] { return figures(run_iteration(experiment).report); }); };
  const auto shorter = in_process();
  experiment.every_microbatch = true;
  const auto whole = in_process();
  ASSERT_TRUE(shorter && whole);
  EXPECT_EQ(shorter->front(), is_shortened ? 1 : 0);
  EXPECT_EQ(whole->front(), 0);
  ASSERT_EQ(shorter->size(), whole->size());
  for (std::size_t i = 1; i < whole->size(); ++i)
    EXPECT_NEAR((*shorter)[i], (*whole)[i],
                1e-9 * std::max(std::abs((*whole)[i]), 1e-3 * (*whole)[1]) + rounding)
        << i;
}

struct LongCase {
  ScheduleName schedule;
  int pp, vpp;
};

class LongSteps : public ::testing::TestWithParam<LongCase> {};

TEST_P(LongSteps, EqualWholeOnes) {
  const auto& [schedule, pp, vpp] = GetParam();
  for (const std::int64_t microbatches : {1200, 1236}) {
    SCOPED_TRACE(microbatches);
    expect_equal(pipeline(schedule, pp, vpp, microbatches));
  }
}

TEST_P(LongSteps, EqualWholeOnesOnSharedLinks) {
  const auto& [schedule, pp, vpp] = GetParam();
  Experiment experiment = pipeline(schedule, pp, vpp, 1200);
  experiment.engine = Engine::simgrid;
  // SimGrid's rounding of GPipe's long chains of messages is no line: every microbatch is simulated.
  expect_equal(experiment, schedule != ScheduleName::gpipe);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, LongSteps,
    ::testing::Values(LongCase{ScheduleName::gpipe, 4, 1}, LongCase{ScheduleName::one_f_one_b, 4, 1},
                      LongCase{ScheduleName::interleaved, 4, 2}, LongCase{ScheduleName::interleaved, 4, 4},
                      LongCase{ScheduleName::zb_h1, 4, 1}, LongCase{ScheduleName::zb_h2, 4, 1},
                      LongCase{ScheduleName::zb_v, 4, 2}, LongCase{ScheduleName::dualpipe_v, 4, 2},
                      LongCase{ScheduleName::v_half, 4, 2}, LongCase{ScheduleName::v_min, 4, 2}),
    [](const auto& each) {
      std::string name = to_string(each.param.schedule) + std::to_string(each.param.vpp);
      std::erase(name, '-');
      return name;
    });

TEST(LongStep, EqualsTheWholeOneWithoutAPipeline) {
  expect_equal(pipeline(ScheduleName::one_f_one_b, 1, 1, 1200));
}

TEST(LongStep, EqualsTheWholeOneWithShardedParametersThatAreGatheredForEachMicrobatch) {
  Experiment experiment = pipeline(ScheduleName::one_f_one_b, 2, 1, 1100);
  experiment.plan.zero = 3;
  expect_equal(experiment);
}

TEST(LongStep, EqualsTheWholeOneWithoutStepTogether) {
  Experiment experiment = pipeline(ScheduleName::zb_h2, 4, 1, 1200);
  experiment.plan.sync_step = false;
  expect_equal(experiment);
}

TEST(LongStep, KeepsTheRestOfGroupsThatDoNotDivideTheBatch) {
  Experiment experiment = pipeline(ScheduleName::interleaved, 4, 2, 1204);
  experiment.plan.microbatch_group = 6;
  expect_equal(experiment);
}

TEST(LongStep, OfJitterIsSimulatedInFull) {
  Experiment experiment = pipeline(ScheduleName::one_f_one_b, 2, 1, 1200);
  experiment.conditions.jitter.compute = 0.1;
  EXPECT_FALSE(run_iteration(experiment).report.extrapolation);
}

TEST(LongStep, OfAMillionMicrobatchesTakesTheTimeOfItsRounds) {
  const Report report = run_iteration(pipeline(ScheduleName::one_f_one_b, 8, 1, 1'000'000)).report;
  ASSERT_TRUE(report.extrapolation);
  const double rounds = 1e6 / static_cast<double>(report.extrapolation->round());
  EXPECT_NEAR(report.step_time_s, rounds * report.extrapolation->round_s, 1e-4 * report.step_time_s);
  EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-9 * report.step_time_s);
}

// Two tasks in turn, and a rank that is ahead by a little less in each round: it waits one day.
TEST(SteadyRound, IsNoneWhereARankCatchesUpWithTheOneBeforeIt) {
  const Experiment experiment = pipeline(ScheduleName::gpipe, 2, 1, 512);
  const Preparation ready = prepare(experiment);
  const auto timeline = [&](double first_s, double second_s) {
    Timeline made;
    for (const Instance& instance : ready.tasks.instances) {
      const RankOps& ops = ready.schedule.ranks[static_cast<std::size_t>(instance.pipeline_rank)];
      TimelineRank rank{instance, std::vector<Span>(ops.size())};
      const double each_s = instance.pipeline_rank == 0 ? first_s : second_s;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const double begin =
            instance.pipeline_rank + each_s * (ops[i].microbatch + (begins_backward(ops[i].kind) ? 512 : 0));
        rank.spans[i] = {begin, begin + 0.5};
      }
      made.ranks.push_back(std::move(rank));
    }
    return made;
  };
  const auto found = [&](double first_s, double second_s) {
    return steady_round(ready.schedule, ready.tasks, timeline(first_s, second_s), 1);
  };
  ASSERT_TRUE(found(1, 1));
  EXPECT_TRUE(found(1, 1)->is_uniform);
  EXPECT_FALSE(found(1, 0.99999));
}

TEST(OrderMemory, DoesNotDependOnHowManyMicrobatchesFollow) {
  for (const ScheduleName schedule :
       {ScheduleName::gpipe, ScheduleName::zb_v, ScheduleName::v_half, ScheduleName::v_min,
        ScheduleName::dualpipe_v, ScheduleName::interleaved}) {
    for (const int pp : {2, 3, 4, 8}) {
      const Plan plan = pipeline(schedule, pp, schedule == ScheduleName::gpipe ? 1 : 2, 96 * pp).plan;
      const Work work = make_work(read_model("llama3-8b"), plan);
      const auto found = order_memory(plan, work, 0), whole = rank_memory(make_order(plan), plan, work);
      for (std::size_t r = 0; r < whole.size(); ++r)
        EXPECT_NEAR(found[r].peak_bytes, whole[r].peak_bytes, 1e-9 * whole[r].peak_bytes)
            << to_string(schedule) << " " << pp << " " << r;
    }
  }
}

TEST(RunSize, CountsTheOpsOfTheWholeSchedule) {
  for (const ScheduleName schedule :
       {ScheduleName::one_f_one_b, ScheduleName::zb_h1, ScheduleName::interleaved}) {
    const Experiment experiment = pipeline(schedule, 4, schedule == ScheduleName::interleaved ? 2 : 1, 400);
    double ops = 0;
    for (const RankOps& rank : complete_order(experiment).ranks) ops += static_cast<double>(rank.size());
    EXPECT_NEAR(size_of(experiment).ops, ops, 0.01 * ops) << to_string(schedule);
  }
}

TEST(RunSize, OfATraceOfAMillionMicrobatchesIsRefusedWithItsTerms) {
  Experiment experiment = pipeline(ScheduleName::one_f_one_b, 8, 1, 1'000'000);
  experiment.every_microbatch = true;
  try {
    run_iteration(experiment);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("1000000 microbatches"));
    EXPECT_THAT(error.what(), HasSubstr("--large"));
    EXPECT_THAT(error.violations().front().nearest, HasSubstr("global batch "));
  }
}

}  // namespace
}  // namespace rehearse
