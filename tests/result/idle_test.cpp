#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "result/idle.h"

namespace rehearse {
namespace {

Op op_of(OpKind kind, Stream stream, int microbatch = 0) {
  Op op;
  op.kind = kind;
  op.stream = stream;
  op.microbatch = microbatch;
  return op;
}

struct Row {
  RankOps ops;
  TimelineRank rank;
  std::int32_t add(OpKind kind, Stream stream, Span span, std::initializer_list<std::int32_t> waits = {}) {
    rank.spans.push_back(span);
    return ops.add(op_of(kind, stream), waits);
  }
};

TEST(Idle, BubbleIsTheIdleShareOfTheStep) {
  Row row;
  row.add(OpKind::forward, Stream::compute, {1, 2});
  row.add(OpKind::backward, Stream::compute, {4, 6});
  EXPECT_DOUBLE_EQ(bubble_fraction(row.rank, row.ops, 8), 5.0 / 8);
  EXPECT_EQ(bubble_fraction(row.rank, row.ops, 0), 0);
}

TEST(Idle, OverlappingComputeIsBusyOnce) {
  Row row;
  row.add(OpKind::forward, Stream::compute, {0, 3});
  row.add(OpKind::backward, Stream::compute, {2, 4});
  EXPECT_DOUBLE_EQ(compute_busy(row.rank, row.ops), 4);
}

TEST(Idle, OnlyTheMovingPartOfAWaitIsExposed) {
  Row row;
  row.add(OpKind::forward, Stream::compute, {0, 1});
  const auto receive = row.add(OpKind::recv_forward, Stream::recv_forward, {3, 5});
  row.add(OpKind::forward, Stream::compute, {5, 6}, {receive});
  const auto gaps = compute_gaps(row.rank, row.ops, 6);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].begin, 1);
  EXPECT_EQ(gaps[0].end, 5);
  ASSERT_EQ(gaps[0].blockers.size(), 1u);
  EXPECT_EQ(gaps[0].blockers[0].ready, 0);
  EXPECT_DOUBLE_EQ(exposed(gaps[0], row.rank, row.ops).pp, 2);
}

TEST(Idle, MessageThatNobodyWaitsForIsHidden) {
  Row row;
  row.add(OpKind::forward, Stream::compute, {0, 1});
  row.add(OpKind::send_forward, Stream::send_forward, {1, 3}, {0});
  row.add(OpKind::forward, Stream::compute, {2, 4});
  const auto gaps = compute_gaps(row.rank, row.ops, 4);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_TRUE(gaps[0].blockers.empty());
}

TEST(Idle, MessageAheadInTheStreamIsExposedToo) {
  Row row;
  row.add(OpKind::recv_forward, Stream::recv_forward, {0, 2});
  const auto second = row.add(OpKind::recv_forward, Stream::recv_forward, {2, 3});
  row.add(OpKind::forward, Stream::compute, {3, 4}, {second});
  const auto gaps = compute_gaps(row.rank, row.ops, 4);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_DOUBLE_EQ(exposed(gaps[0], row.rank, row.ops).pp, 3);
}

TEST(Idle, ReductionsThatTheStepWaitsForAreExposed) {
  Row row;
  row.add(OpKind::backward, Stream::compute, {0, 1});
  row.add(OpKind::reduce_grad, Stream::gradient, {0.5, 2}, {0});
  const auto tied = row.add(OpKind::reduce_tied, Stream::gradient, {4, 7}, {0});
  row.add(OpKind::step, Stream::compute, {7, 8}, {tied});
  const auto gaps = compute_gaps(row.rank, row.ops, 8);
  ASSERT_EQ(gaps.size(), 1u);
  const Exposure parts = exposed(gaps[0], row.rank, row.ops);
  EXPECT_DOUBLE_EQ(parts.dp, 1);
  EXPECT_DOUBLE_EQ(parts.tied, 3);
  EXPECT_DOUBLE_EQ(parts.pp, 0);
}

TEST(Idle, TimeOfTwoMovingOpsCountsOnceForTheLaterEnd) {
  Row row;
  const auto send = row.add(OpKind::send_backward, Stream::send_backward, {0, 3});
  const auto reduce = row.add(OpKind::reduce_grad, Stream::gradient, {1, 5});
  row.add(OpKind::step, Stream::compute, {5, 6}, {send, reduce});
  const auto gaps = compute_gaps(row.rank, row.ops, 6);
  const Exposure parts = exposed(gaps.at(0), row.rank, row.ops);
  EXPECT_DOUBLE_EQ(parts.dp, 4);
  EXPECT_DOUBLE_EQ(parts.pp, 1);
}

TEST(Idle, WithOneQueueComputeWaitsForTheMessageIssuedBeforeIt) {
  Row row;
  row.add(OpKind::send_forward, Stream::send_forward, {0, 2});
  row.add(OpKind::forward, Stream::compute, {2, 3});
  EXPECT_TRUE(compute_gaps(row.rank, row.ops, 3, false).at(0).blockers.empty());
  EXPECT_EQ(compute_gaps(row.rank, row.ops, 3, true).at(0).blockers.size(), 1u);
}

TEST(Idle, TrailingGapKnowsWhatStillMoves) {
  Row row;
  row.add(OpKind::backward, Stream::compute, {0, 1});
  row.add(OpKind::send_backward, Stream::send_backward, {1, 2}, {0});
  const auto gaps = compute_gaps(row.rank, row.ops, 4);
  ASSERT_EQ(gaps.size(), 1u);
  EXPECT_EQ(gaps[0].next, -1);
  EXPECT_DOUBLE_EQ(exposed(gaps[0], row.rank, row.ops).pp, 1);
}

TEST(Timeline, ThatDoesNotBelongToTheScheduleIsRefused) {
  Row row;
  row.add(OpKind::forward, Stream::compute, {0, 1});
  Schedule schedule;
  schedule.ranks.push_back(row.ops);
  Timeline good{{row.rank}};
  EXPECT_NO_THROW(require_fits(good, schedule));
  Timeline bad = good;
  bad.ranks[0].spans.push_back({1, 2});
  EXPECT_THROW(require_fits(bad, schedule), InputError);
  bad = good;
  bad.ranks[0].instance.pipeline_rank = 1;
  EXPECT_THROW(require_fits(bad, schedule), InputError);
  bad.ranks[0].instance.pipeline_rank = -1;
  EXPECT_THROW(require_fits(bad, schedule), InputError);
  for (const Span span : {Span{2, 1}, Span{-1, 1}, Span{0, std::numeric_limits<double>::infinity()},
                          Span{std::numeric_limits<double>::quiet_NaN(), 1}}) {
    bad = good;
    bad.ranks[0].spans[0] = span;
    EXPECT_THROW(require_fits(bad, schedule), InputError);
  }
}

}  // namespace
}  // namespace rehearse
