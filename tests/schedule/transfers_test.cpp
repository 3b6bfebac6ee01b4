#include <gmock/gmock.h>

#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "plan/stages.h"
#include "replay.h"
#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

std::vector<Op> compute_ops(const RankOps& list) {
  std::vector<Op> ops;
  for (Op op : list.ops()) {
    op.first_wait = op.wait_count = 0;
    if (is_compute(op.kind)) ops.push_back(op);
  }
  return ops;
}

std::string waits_of(const Schedule& schedule, int rank, const std::string& name) {
  const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank)];
  std::vector<std::string> names;
  for (const std::int32_t wait : ops.waits(ops[position(schedule, rank, name)]))
    names.push_back(to_string(ops[static_cast<std::size_t>(wait)]));
  return join(names, " ");
}

RC_GTEST_PROP(Transfers, KeepTheOrderOfComputeOps, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule order = make_order(shape.plan);
  const Schedule full = add_transfers(order, shape.plan.overlap_p2p);
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank)
    RC_ASSERT(compute_ops(full.ranks[rank]) == compute_ops(order.ranks[rank]));
}

RC_GTEST_PROP(Transfers, CarryEveryActivationAndGradientOnceBetweenRanks, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule full = add_transfers(make_order(shape.plan), shape.plan.overlap_p2p);
  std::int64_t sends = 0, receives = 0;
  for (const RankOps& ops : full.ranks)
    for (const Op& op : ops.ops()) {
      sends += is_send(op.kind);
      receives += is_receive(op.kind);
    }
  std::int64_t boundaries = 0;
  for (int stage = 1; stage < shape.plan.stages(); ++stage)
    boundaries += pipeline_rank_of(stage - 1, shape.plan) != pipeline_rank_of(stage, shape.plan);
  RC_ASSERT(sends == 2 * boundaries * shape.plan.microbatches());
  RC_ASSERT(receives == sends);
}

RC_GTEST_PROP(Transfers, MakeAnOpWaitForAtMostOneMessagePerStream, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule full = add_transfers(make_order(shape.plan), shape.plan.overlap_p2p);
  for (const RankOps& ops : full.ranks)
    for (const Op& op : ops.ops()) {
      std::array<int, kStreams> waits{};
      for (const std::int32_t wait : ops.waits(op))
        RC_ASSERT(++waits[static_cast<std::size_t>(ops[static_cast<std::size_t>(wait)].stream)] == 1);
    }
}

RC_GTEST_PROP(Transfers, WithoutOverlapEveryComputeOpFollowsAllMessagesIssuedBeforeIt, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule full = add_transfers(make_order(shape.plan), false);
  for (const RankOps& ops : full.ranks) {
    std::array<std::int32_t, kStreams> issued, waited;
    issued.fill(-1);
    waited.fill(-1);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (const std::int32_t wait : ops.waits(ops[i])) {
        if (!is_compute(ops[i].kind)) continue;
        std::int32_t& latest = waited[static_cast<std::size_t>(ops[static_cast<std::size_t>(wait)].stream)];
        latest = std::max(latest, wait);
      }
      if (is_compute(ops[i].kind)) RC_ASSERT(waited == issued);
      if (!is_compute(ops[i].kind))
        issued[static_cast<std::size_t>(ops[i].stream)] = static_cast<std::int32_t>(i);
    }
  }
}

TEST(Transfers, NameTheStageOfTheirOwnSide) {
  const Schedule full = add_transfers(orders::one_f_one_b({2, 1}), true);
  EXPECT_EQ(write_text(full),
            "rank 0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
            "rank 1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
}

TEST(Transfers, OverlapWaitsForTheInputAlone) {
  const Schedule full = add_transfers(orders::one_f_one_b({4, 8}), true);
  EXPECT_EQ(waits_of(full, 1, "1F3"), "1RECV_F3");
  EXPECT_EQ(waits_of(full, 1, "1B2"), "1RECV_B2");
  EXPECT_EQ(waits_of(full, 1, "1SEND_B2"), "1B2");
  EXPECT_EQ(waits_of(full, 1, "1RECV_F3"), "");
}

TEST(Transfers, WithoutOverlapWaitForSendsToo) {
  const Schedule full = add_transfers(orders::one_f_one_b({2, 3}), false);
  EXPECT_EQ(waits_of(full, 0, "0F1"), "0SEND_F0");
  EXPECT_EQ(waits_of(full, 1, "1F1"), "1RECV_F1 1SEND_B0");
}

// The last stage turns a forward into its backward at once, whatever arrives at that instant.
TEST(Transfers, WithoutOverlapDoNotDelayAnOpThatCouldBeginBeforeThem) {
  EXPECT_EQ(waits_of(add_transfers(orders::one_f_one_b({4, 8}), false), 3, "3B0"), "");
}

TEST(Transfers, SplitBackwardsSendTheirGradientAfterTheInputHalf) {
  const Schedule order = read_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "split.csv");
  EXPECT_EQ(write_text(add_transfers(order, true)),
            "rank 0: 0F0 0SEND_F0 0RECV_B0 0I0 0W0\n"
            "rank 1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
}

TEST(Transfers, VShapedPlacementNeedsNoMessageAtTheTurn) {
  const Schedule order = read_csv("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv");
  EXPECT_EQ(write_text(add_transfers(order, true)),
            "rank 0: 0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 0B0\n"
            "rank 1: 1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0\n");
}

TEST(Transfers, CannotBeAddedToAnOrderThatNeverEnds) {
  const Schedule order = read_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "stuck.csv");
  try {
    add_transfers(order, true);
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 is at 0B0, rank 1 is at 1F1"));
    EXPECT_THAT(error.what(), HasSubstr("0B0<-"));
  }
}

TEST(Transfers, AreAddedOnce) {
  const Schedule full = add_transfers(orders::one_f_one_b({2, 2}), true);
  EXPECT_THROW(add_transfers(full, true), std::logic_error);
}

}  // namespace
}  // namespace rehearse
