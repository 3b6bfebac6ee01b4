#include <gmock/gmock.h>

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "replay.h"
#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

Schedule synced(const Schedule& order, bool overlap, bool tied, int replicas, std::vector<int> buckets) {
  return add_gradient_sync(add_transfers(order, true), {overlap, tied, replicas, std::move(buckets)});
}

std::string rank_text(const Schedule& schedule, int rank) {
  const std::string text = write_text(schedule);
  const std::size_t begin = text.find("rank " + std::to_string(rank));
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(GradientSync, OverlappedReducesEachBucketAfterItsPartOfTheLastBackward) {
  const Schedule schedule = synced(orders::one_f_one_b({2, 2}), true, false, 2, {1, 3});
  EXPECT_EQ(rank_text(schedule, 1),
            "rank 1: 1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1.0/3 1REDUCE_GRAD.0/3 1B1.1/3 "
            "1REDUCE_GRAD.1/3 1B1.2/3 1REDUCE_GRAD.2/3 1SEND_B1 1STEP");
  const RankOps& ops = schedule.ranks[1];
  const Op& send = ops[position(schedule, 1, "1SEND_B1")];
  EXPECT_EQ(to_string(ops[static_cast<std::size_t>(ops.waits(send)[0])]), "1B1.2");
}

TEST(GradientSync, AloneHoldsUpWhatTheRankComputesNext) {
  GradientSync sync{true, false, 2, {2}};
  sync.each_microbatch = sync.alone = true;
  EXPECT_EQ(
      write_text(add_gradient_sync(orders::one_f_one_b({1, 2}), sync)),
      "rank 0: 0F0 0B0.0/2 0REDUCE_GRAD.0/2 0B0.1/2(0REDUCE_GRAD.0/2) 0REDUCE_GRAD.1/2 "
      "0F1(0REDUCE_GRAD.1/2) 0B1.0/2 0REDUCE_GRAD.0/2 0B1.1/2(0REDUCE_GRAD.0/2) 0REDUCE_GRAD.1/2 0STEP\n");
}

TEST(GradientSync, WithoutOverlapReducesAfterTheRanksLastBackward) {
  const Schedule schedule = synced(orders::interleaved({2, 2, 2}), false, false, 2, {1, 1, 1, 1});
  EXPECT_THAT(rank_text(schedule, 0), ::testing::EndsWith("0B1 2REDUCE_GRAD 0REDUCE_GRAD 0STEP"));
}

TEST(GradientSync, SplitBackwardsAreReducedAfterTheWeightHalf) {
  const Schedule order = read_csv("0F0,0I0,0W0\n", "split.csv");
  EXPECT_EQ(write_text(synced(order, true, false, 2, {2})),
            "rank 0: 0F0 0I0 0W0.0/2 0REDUCE_GRAD.0/2 0W0.1/2 0REDUCE_GRAD.1/2 0STEP\n");
}

TEST(GradientSync, OneReplicaNeedsNoReduction) {
  EXPECT_EQ(write_text(synced(orders::one_f_one_b({1, 1}), true, true, 1, {4})), "rank 0: 0F0 0B0 0STEP\n");
}

TEST(GradientSync, TiedEmbeddingIsReducedBetweenFirstAndLastStage) {
  const Schedule schedule = synced(orders::one_f_one_b({3, 1}), true, true, 1, {1, 1, 1});
  EXPECT_EQ(rank_text(schedule, 0), "rank 0: 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_TIED 0STEP");
  EXPECT_THAT(rank_text(schedule, 1), ::testing::Not(::testing::HasSubstr("TIED")));
  EXPECT_THAT(rank_text(schedule, 2), ::testing::EndsWith("2SEND_B0 2REDUCE_TIED 2STEP"));
}

TEST(GradientSync, ChunksReduceInTheOrderOfTheirLastBackwards) {
  const Schedule schedule = synced(orders::interleaved({2, 4, 2}), true, true, 2, {1, 2, 2, 1});
  std::vector<std::string> reductions;
  for (const Op& op : schedule.ranks[1].ops())
    if (op.stream == Stream::gradient) reductions.push_back(to_string(op));
  EXPECT_THAT(reductions,
              ::testing::ElementsAre("3REDUCE_GRAD", "1REDUCE_GRAD.0", "1REDUCE_GRAD.1", "3REDUCE_TIED"));
}

TEST(GradientSync, WantsABucketCountForEveryStage) {
  EXPECT_THROW(synced(orders::one_f_one_b({2, 2}), true, false, 2, {1}), std::logic_error);
  EXPECT_THROW(synced(orders::one_f_one_b({2, 2}), true, false, 2, {1, 0}), std::logic_error);
}

TEST(GradientSync, IsAddedOnce) {
  const Schedule schedule = synced(orders::one_f_one_b({2, 2}), true, false, 2, {2, 2});
  EXPECT_THROW(add_gradient_sync(schedule, {}), std::logic_error);
}

RC_GTEST_PROP(GradientSync, CostsNothingWhenReductionsAreFree, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule without = add_transfers(make_order(shape.plan), shape.plan.overlap_p2p);
  const double expected = replay(without, {}).makespan;
  RC_ASSERT(std::abs(replay(shape.complete(), {}).makespan - expected) < 1e-9 * expected);
}

RC_GTEST_PROP(GradientSync, EndsEveryRankWithItsOneStep, ()) {
  const Schedule schedule = (*any_shape()).complete();
  for (const RankOps& ops : schedule.ranks) {
    const auto steps = std::ranges::count_if(ops.ops(), [](const Op& op) { return op.kind == OpKind::step; });
    RC_ASSERT(steps == 1);
    RC_ASSERT(ops.ops().back().kind == OpKind::step);
  }
}

}  // namespace
}  // namespace rehearse
