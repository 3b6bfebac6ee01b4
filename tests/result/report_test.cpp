#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cases.h"
#include "result/communication.h"

namespace rehearse {
namespace {

using namespace test;

// Expected to hold for every plan, whatever its messages and reductions cost.
RC_GTEST_PROP(Report, SharesSumToTheStep, ()) {
  const int pp = *rc::gen::inRange(1, 6);
  const int vpp = pp > 1 ? *rc::gen::inRange(1, 4) : 1;
  const int dp = *rc::gen::inRange(1, 3);
  Plan plan = small_plan(pp, vpp, pp * *rc::gen::inRange(1, 5), dp);
  plan.overlap_p2p = *rc::gen::arbitrary<bool>();
  plan.overlap_grad_reduce = *rc::gen::arbitrary<bool>();
  plan.one_queue = *rc::gen::arbitrary<bool>();
  const auto seconds = [] { return 1e-3 * *rc::gen::inRange(0, 3000); };
  const Durations durations{1e-3 + seconds(), 1e-3 + seconds(), seconds(), seconds(), seconds()};
  TaskOptions options;
  options.one_queue = plan.one_queue;
  const Case made = make_case(plan, durations, *rc::gen::arbitrary<bool>(), small_model(pp * vpp), options);
  const Report& report = made.report;
  const TimeShares& time = report.time;
  RC_ASSERT(std::abs(time.sum() - report.step_time_s) <= 1e-12 * report.step_time_s);
  for (const double share : {time.compute, time.optimizer, time.exposed_tp, time.exposed_pp, time.exposed_dp})
    RC_ASSERT(share >= 0);
  RC_ASSERT(time.bubble >= -1e-12 * report.step_time_s);
  for (const CommunicationLine& line : report.communication)
    RC_ASSERT(line.exposed_s <= line.busy_s * (1 + 1e-9) + 1e-12);
}

// Narayanan et al. 2021, sections 2.1 and 2.2: with equal stages and free messages the closed form is exact.
RC_GTEST_PROP(Report, BubbleOfEqualStagesIsTheClosedForm, ()) {
  const int pp = *rc::gen::inRange(1, 7);
  const int vpp = pp > 1 ? *rc::gen::inRange(1, 4) : 1;
  const Plan plan = small_plan(pp, vpp, pp * *rc::gen::inRange(1, 6));
  const Case made = make_case(plan, Durations{1, 2, 0, 0, 0}, false, small_model(pp * vpp));
  RC_ASSERT(std::abs(made.report.bubble_mean - made.report.bubble_ideal) < 1e-12);
  RC_ASSERT(std::abs(made.report.bubble_worst - made.report.bubble_ideal) < 1e-12);
  RC_ASSERT(std::abs(made.report.mean_time.bubble - made.report.bubble_ideal * made.report.step_time_s) <
            1e-9);
  RC_ASSERT(made.report.time.bubble == 0);
}

// p = 2, m = 2, messages of 0.5 s:
//   rank 0: F0 0-1, F1 1-2, B0 5-7, B1 8-10.  rank 1: F0 1.5-2.5, B0 2.5-4.5, F1 4.5-5.5, B1 5.5-7.5.
TEST(Report, OneForwardOneBackwardByHand) {
  Plan plan = small_plan(2, 1, 2);
  plan.overlap_p2p = true;
  const Case made = make_case(plan, Durations{1, 2, 0.5, 0, 0});
  const Report& report = made.report;
  // B1's gradient leaves rank 1 at 7.5 and arrives at 8; rank 0 ends at 10.
  EXPECT_DOUBLE_EQ(report.step_time_s, 10);
  // Rank 0 is idle from 2 to 5 and from 7 to 8; the messages that it waits for move from 4.5 and from 7.5.
  const TimeShares& first = report.ranks[0].time;
  EXPECT_DOUBLE_EQ(first.exposed_pp, 1);
  EXPECT_DOUBLE_EQ(first.bubble, 3);
  EXPECT_DOUBLE_EQ(first.compute, 4.5);
  EXPECT_DOUBLE_EQ(first.exposed_tp, 1.5);
  // F0 on rank 0, all of rank 1 with F0's and B1's messages, B1 on rank 0.
  EXPECT_EQ(report.critical_rank, 1);
  EXPECT_DOUBLE_EQ(report.time.exposed_pp, 1);
  EXPECT_DOUBLE_EQ(report.time.bubble, 0);
  EXPECT_DOUBLE_EQ(report.time.compute, 6.75);
  EXPECT_DOUBLE_EQ(report.time.exposed_tp, 2.25);
  EXPECT_DOUBLE_EQ(report.bubble_mean, 0.4);
  EXPECT_DOUBLE_EQ(report.bubble_ideal, 1.0 / 3);
}

TEST(Report, ThroughputFollowsFromTheStep) {
  const Plan plan = small_plan(2, 1, 4, 2);
  const Case made = make_case(plan, Durations{});
  const Report& report = made.report;
  EXPECT_DOUBLE_EQ(report.samples_per_s, 8 / report.step_time_s);
  EXPECT_DOUBLE_EQ(report.tokens_per_s, 8 * 128 / report.step_time_s);
  EXPECT_DOUBLE_EQ(report.tokens_per_s_per_gpu, report.tokens_per_s / 4);
  const double flops = count_flops(made.work, plan).model() * 4 * 2;
  EXPECT_DOUBLE_EQ(report.model_tflops_per_gpu, flops / report.step_time_s / 4 / 1e12);
  EXPECT_DOUBLE_EQ(report.mfu, report.model_tflops_per_gpu / 312);
  EXPECT_GE(report.hfu, report.mfu);
}

TEST(Report, RecomputeRaisesHfuAloneAtTheSameStep) {
  Plan plan = small_plan(2, 1, 4);
  const Report without = make_case(plan, Durations{}).report;
  plan.recompute = Recompute::full;
  const Report with = make_case(plan, Durations{}).report;
  EXPECT_DOUBLE_EQ(with.mfu, without.mfu);
  EXPECT_GT(with.hfu, 1.2 * without.hfu);
}

TEST(Report, HiddenReductionsAreNotExposed) {
  Plan plan = small_plan(1, 1, 2, 2);
  const Durations durations{1, 2, 0, 0.25, 0.5};
  const Report hidden = make_case(plan, durations).report;
  EXPECT_DOUBLE_EQ(hidden.time.exposed_dp, 0.25);  // the last of two buckets has nothing to hide behind
  plan.overlap_grad_reduce = false;
  const Report shown = make_case(plan, durations).report;
  EXPECT_DOUBLE_EQ(shown.time.exposed_dp, 0.25);  // one reduction of the whole stage
  EXPECT_DOUBLE_EQ(shown.time.optimizer, 0.5);
}

TEST(Report, CountsMessagesAndTheirBytes) {
  const Plan plan = small_plan(2, 1, 4, 2);
  const Case made = make_case(plan, Durations{1, 2, 0.1, 0.1, 0}, true);
  const auto& lines = made.report.communication;
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].kind, "pp");
  EXPECT_EQ(lines[0].calls, 8);
  EXPECT_DOUBLE_EQ(lines[0].bytes_per_rank, 8 * 128 * 256 * 2);
  EXPECT_LE(lines[0].busy_s, 0.8);  // both directions may move at once
  EXPECT_GE(lines[0].busy_s, 0.4);
  EXPECT_EQ(lines[1].kind, "dp");
  EXPECT_EQ(lines[1].group_size, 2);
  const int stage = made.report.critical_rank;
  EXPECT_DOUBLE_EQ(lines[1].bytes_per_rank, 4 * made.work.parameters(stage));
  EXPECT_EQ(lines[2].kind, "tied");
  EXPECT_DOUBLE_EQ(lines[2].bytes_per_rank, 4.0 * 1000 * 256);
  const auto rank = static_cast<std::size_t>(made.report.critical_rank);
  EXPECT_NEAR(lines[1].exposed_s + lines[2].exposed_s, made.report.ranks[rank].time.exposed_dp, 1e-12);
}

TEST(Report, MessagesOfOneMicrobatchAreBusyOneAfterTheOther) {
  const Case made = make_case(small_plan(2, 1, 1), Durations{1, 2, 0.1, 0, 0});
  ASSERT_EQ(made.report.communication.size(), 1u);
  EXPECT_EQ(made.report.critical_rank, 0);
  EXPECT_EQ(made.report.communication[0].calls, 2);
  EXPECT_NEAR(made.report.communication[0].busy_s, 0.2, 1e-12);
  EXPECT_NEAR(made.report.communication[0].exposed_s, 0.2, 1e-12);
}

TEST(Report, TensorParallelCollectivesComeFromTheWork) {
  Plan plan = small_plan(1, 1, 4);
  plan.tp = 2;
  plan.sequence_parallel = true;
  const Case made = make_case(plan, Durations{});
  double exposed = 0, bytes = 0;
  std::vector<std::string> ops;
  for (const CommunicationLine& line : made.report.communication) {
    EXPECT_EQ(line.kind, "tp");
    EXPECT_EQ(line.group_size, 2);
    EXPECT_GE(line.calls, 4);
    exposed += line.exposed_s;
    bytes += line.bytes_per_rank;
    ops.push_back(line.op);
  }
  EXPECT_THAT(ops, testing::IsSupersetOf({"all_gather", "reduce_scatter"}));
  EXPECT_NEAR(exposed, made.report.time.exposed_tp, 1e-12);
  EXPECT_GT(bytes, 0);
}

// For each of four microbatches: the activation from the previous stage, and the gradient from the next.
TEST(Report, CountsTheGathersOfWhatArrivesInParts) {
  for (const int pp : {2, 3}) {
    Plan plan = small_plan(pp, 1, 4);
    plan.tp = 2;
    plan.scatter_gather = true;
    const Report report = make_case(plan, Durations{}).report;
    const int neighbours = (report.critical_rank > 0) + (report.critical_rank + 1 < pp);
    const auto gathers = std::ranges::find(report.communication, "all_gather", &CommunicationLine::op);
    ASSERT_NE(gathers, report.communication.end());
    EXPECT_EQ(gathers->calls, 4 * neighbours);
    EXPECT_DOUBLE_EQ(gathers->bytes_per_rank, 4.0 * neighbours * 128 * 256 * 2);
  }
}

TEST(Report, OfManyReplicasEqualsTheFoldedOne) {
  const Plan plan = small_plan(3, 1, 6, 2);
  const Durations durations{1, 2, 0.1, 0.3, 0.2};
  const Case folded = make_case(plan, durations);
  TaskOptions all;
  all.fold = Fold::none;
  const Case full = make_case(plan, durations, false, small_model(), all);
  EXPECT_EQ(full.timeline.ranks.size(), 6u);
  EXPECT_DOUBLE_EQ(full.report.step_time_s, folded.report.step_time_s);
  EXPECT_DOUBLE_EQ(full.report.bubble_mean, folded.report.bubble_mean);
  EXPECT_DOUBLE_EQ(full.report.time.exposed_dp, folded.report.time.exposed_dp);
}

TEST(Report, OfNothingIsZeros) {
  const Plan plan = small_plan(2, 1, 2);
  const Model model = small_model();
  const Schedule schedule = full_schedule(plan);
  const Report report = make_report({}, schedule, derive_tasks(schedule, plan), model, plan,
                                    make_work(model, plan), {}, small_facts(plan));
  EXPECT_EQ(report.step_time_s, 0);
  EXPECT_EQ(report.mfu, 0);
  EXPECT_EQ(report.time.sum(), 0);
}

TEST(Report, WithoutPricesABusyStreamIsCompute) {
  const Plan plan = small_plan(2, 1, 2);
  const Case made = make_case(plan, Durations{1, 2, 0, 0, 0.5});
  const Report report = make_report(made.timeline, made.schedule, derive_tasks(made.schedule, plan),
                                    made.model, plan, made.work, {}, small_facts(plan));
  EXPECT_DOUBLE_EQ(report.ranks[0].time.compute, 6);
  EXPECT_DOUBLE_EQ(report.time.compute, 9);
  EXPECT_DOUBLE_EQ(report.time.optimizer, 0.5);
}

}  // namespace
}  // namespace rehearse
