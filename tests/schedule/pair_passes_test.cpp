// Forward and backward passes that take turns.
#include <gtest/gtest.h>

#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"

namespace rehearse {
namespace {

// "1F2+0B1 ...": the pairs of a rank, in order.
std::string pairs_of(const Schedule& schedule, std::size_t rank) {
  std::string text, forward;
  for (const Op& op : schedule.ranks[rank].ops()) {
    if (op.beside < 0) continue;
    if (op.kind == OpKind::forward)
      forward = to_string(op);
    else
      text += (text.empty() ? "" : " ") + forward + "+" + to_string(op);
  }
  return text;
}

TEST(PairPasses, OneForwardAheadWithoutAPipeline) {
  const Schedule schedule = pair_passes(orders::one_f_one_b({1, 3, 1, 0, 1}));
  EXPECT_EQ(write_text(schedule), "rank 0: 0F0 0F1 0B0 0F2 0B1 0B2\n");
  EXPECT_EQ(pairs_of(schedule, 0), "0F1+0B0 0F2+0B1");
}

TEST(PairPasses, OfOneMicrobatchCannotBe) {
  EXPECT_EQ(pairs_of(pair_passes(orders::one_f_one_b({1, 3})), 0), "");
}

// Megatron-LM's warm-up of interleaved 1F1B and one more: (2 - 0 - 1) 2 + (2 - 1) 2 + 1.
TEST(PairPasses, EveryStepBetweenWarmUpAndCoolDownIsAPairOfTwoMicrobatches) {
  const Schedule schedule = pair_passes(orders::interleaved({2, 4, 2, 0, 1}));
  EXPECT_EQ(pairs_of(schedule, 0), "0F3+2B0 2F2+2B1 2F3+0B0");
  EXPECT_EQ(pairs_of(schedule, 1), "3F1+3B0 1F2+3B1 1F3+1B0 3F2+1B1 3F3+3B2");
}

TEST(PairPasses, NamesTheStageOfTheOther) {
  const Schedule schedule = pair_passes(orders::interleaved({2, 4, 2, 0, 1}));
  for (const RankOps& ops : schedule.ranks) {
    const Op* forward = nullptr;
    for (const Op& op : ops.ops()) {
      if (op.kind == OpKind::forward) forward = &op;
      if (op.kind != OpKind::backward || op.beside < 0) continue;
      ASSERT_NE(forward, nullptr);
      EXPECT_EQ(op.beside, forward->stage);
      EXPECT_EQ(forward->beside, op.stage);
      EXPECT_NE(forward->microbatch, op.microbatch);
    }
  }
}

// Step 4 of github.com/deepseek-ai/DualPipe: twice a forward and a backward of the other chunk.
TEST(PairPasses, AreThoseOfDualPipe) {
  const Schedule schedule = pair_passes(orders::dualpipe_v({2, 6}));
  EXPECT_NE(pairs_of(schedule, 1).find("1F"), std::string::npos);
  std::size_t pairs = 0;
  for (const Op& op : schedule.ranks[1].ops()) pairs += op.beside >= 0 && op.kind == OpKind::backward ? 1 : 0;
  EXPECT_GE(pairs, 2U * (6 - 2 * 2 + 2));
}

TEST(PairPasses, SurviveMessagesAndReductions) {
  Plan plan;
  plan.pp = plan.vpp = 2;
  plan.ep = plan.dp = 2;
  plan.global_batch = 8;
  plan.schedule = ScheduleName::interleaved;
  plan.overlap_p2p = plan.overlap_experts = true;
  const GradientSync sync{true, false, 2, {2, 2, 2, 2}};
  const Schedule schedule = complete_schedule(plan, sync);
  const Schedule order = pair_passes(make_order(plan));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_NE(pairs_of(order, rank), "");
    EXPECT_EQ(pairs_of(schedule, rank).substr(0, 8), pairs_of(order, rank).substr(0, 8));
  }
}

}  // namespace
}  // namespace rehearse
