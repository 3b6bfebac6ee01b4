// The timeline of a run obeys the schedule.
#include <gtest/gtest.h>

#include <algorithm>

#include "cases.h"
#include "execute/execute.h"

namespace rehearse {
namespace {

Execution run(const Training& training) {
  return execute(training, {1, 3, {10, {}}});
}

TEST(Timeline, HasEverySpanAfterWhatItWaitsFor) {
  const Training training = training_of(tiny_llama(), plan_of(ScheduleName::interleaved, 2, 2, 2));
  const Timeline timeline = run(training).timeline;
  ASSERT_NO_THROW(require_fits(timeline, training.schedule));
  ASSERT_EQ(timeline.ranks.size(), 8U);
  for (const TimelineRank& rank : timeline.ranks) {
    const RankOps& ops = training.schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const std::int32_t wait : ops.waits(ops[i]))
        EXPECT_GE(rank.spans[i].begin, rank.spans[static_cast<std::size_t>(wait)].end);
    }
  }
}

TEST(Timeline, BeginsWithTheFirstOpAndHasMessagesBeginOnBothSidesAtOnce) {
  const Training training = training_of(tiny_gpt(), plan_of(ScheduleName::one_f_one_b, 1, 2, 1));
  const Timeline timeline = run(training).timeline;
  EXPECT_EQ(timeline.ranks[0].spans[0].begin, 0);
  std::vector<double> sent, received;
  for (std::size_t i = 0; i < training.schedule.ranks[0].size(); ++i)
    if (training.schedule.ranks[0][i].kind == OpKind::send_forward)
      sent.push_back(timeline.ranks[0].spans[i].begin);
  for (std::size_t i = 0; i < training.schedule.ranks[1].size(); ++i)
    if (training.schedule.ranks[1][i].kind == OpKind::recv_forward)
      received.push_back(timeline.ranks[1].spans[i].begin);
  EXPECT_EQ(sent.size(), 8U);
  EXPECT_EQ(sent, received);
}

TEST(Timeline, OfOneQueueHasItsOpsOneAfterTheOther) {
  Plan plan = plan_of(ScheduleName::interleaved, 1, 2, 2);
  plan.one_queue = true;
  const Timeline timeline = run(training_of(tiny_llama(), plan)).timeline;
  for (const TimelineRank& rank : timeline.ranks)
    for (std::size_t i = 1; i < rank.spans.size(); ++i) EXPECT_GE(rank.spans[i].end, rank.spans[i - 1].end);
}

TEST(Execution, KeepsTheTimelineOfItsMedianStep) {
  const Execution execution = run(training_of(tiny_llama(), plan_of(ScheduleName::zb_h1, 1, 2, 1)));
  ASSERT_EQ(execution.step_times_s.size(), 3U);
  EXPECT_EQ(execution.losses.size(), 4U);
  std::vector<double> sorted = execution.step_times_s;
  std::ranges::sort(sorted);
  EXPECT_EQ(execution.timeline.end(), sorted[1]);
  EXPECT_GT(execution.tracing_s, 0);
  EXPECT_LT(execution.tracing_s, execution.step_times_s[0]);
}

// 1F1B holds pp microbatches at most, GPipe all of them; recompute holds their inputs only.
TEST(Activations, LiveAsLongAsTheScheduleKeepsThem) {
  const auto first_rank = [](ScheduleName schedule, Recompute recompute) {
    Plan plan = plan_of(schedule, 1, 2, 1);
    plan.recompute = recompute;
    return run(training_of(tiny_llama(), plan)).peak_activation_bytes.front();
  };
  const double one_f_one_b = first_rank(ScheduleName::one_f_one_b, Recompute::none);
  const double gpipe = first_rank(ScheduleName::gpipe, Recompute::none);
  EXPECT_GT(gpipe, 2.5 * one_f_one_b);
  EXPECT_LT(first_rank(ScheduleName::gpipe, Recompute::full), 0.5 * gpipe);
}

// With many microbatches, one input for four layers in place of four.
TEST(Activations, OfGroupsThatRunAgainTogetherAreTheirFirstInputs) {
  const auto peak = [](std::int64_t layers) {
    Plan plan = plan_of(ScheduleName::gpipe, 1, 1, 1);
    plan.global_batch = 64;
    plan.recompute = Recompute::full;
    plan.recompute_layers = layers;
    return run(training_of(tiny_llama(), plan)).peak_activation_bytes.front();
  };
  const double input = 8 * 32 * sizeof(float);
  EXPECT_LT(peak(4), peak(1) - 64 * 2 * input) << "though four layers' tensors live while they run again";
}

// As in the schedule: one unit that computes and one gathered ahead.
TEST(Parameters, OfTwoUnitsAreWholeAtMostWithZero3) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, 2);
  plan.zero = 3;
  Model model = tiny_llama();
  model.layers = 8;
  RankPool rank_pool(training_of(model, plan), {10, {}});
  rank_pool.step();
  double all = 0, table = 0;
  for (const auto& [name, values] : rank_pool.parameters()) {
    all += sizeof(float) * static_cast<double>(values.size());
    if (name.starts_with("embedding")) table += sizeof(float) * static_cast<double>(values.size());
  }
  const double layer = (all - 2 * table) / static_cast<double>(model.layers);
  for (const double bytes : rank_pool.peak_gathered_bytes()) {
    EXPECT_GT(bytes, layer);
    EXPECT_LT(bytes, 2.1 * layer + table);
  }
}

}  // namespace
}  // namespace rehearse
