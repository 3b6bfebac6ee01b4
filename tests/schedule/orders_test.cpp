#include <gmock/gmock.h>

#include <algorithm>

#include "schedule/orders.h"
#include "shapes.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

std::string error_of(const Plan& plan) {
  try {
    make_order(plan);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// Forwards before the first backward: microbatches whose activations are held at once.
int in_flight(const RankOps& ops) {
  int forwards = 0;
  while (ops[static_cast<std::size_t>(forwards)].kind == OpKind::forward) ++forwards;
  return forwards;
}

// The most forwards whose B or W has not come, in full stages.
double activations(const Schedule& schedule) {
  int most = 0;
  for (const RankOps& ops : schedule.ranks) {
    int held = 0;
    for (const Op& op : ops.ops()) {
      held += (op.kind == OpKind::forward) - completes_gradient(op.kind);
      most = std::max(most, held);
    }
  }
  return static_cast<double>(most) * schedule.pp / schedule.stages;
}

TEST(Order, IsTheOneThatThePlanNames) {
  EXPECT_TRUE(same(make_order(plan_of(ScheduleName::gpipe, 3, 1, 5)), orders::gpipe({3, 5})));
  EXPECT_TRUE(same(make_order(plan_of(ScheduleName::one_f_one_b, 3, 1, 5, 2)), orders::one_f_one_b({3, 5})));
  EXPECT_TRUE(same(make_order(plan_of(ScheduleName::interleaved, 3, 2, 6)), orders::interleaved({3, 6, 2})));
}

TEST(Order, Of1F1BHoldsAsManyMicrobatchesAsStagesFollow) {
  const Schedule schedule = orders::one_f_one_b({8, 96});
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_EQ(in_flight(schedule.ranks[static_cast<std::size_t>(rank)]), 8 - rank);
}

// Korthikanti et al. 2022, section 4.2.3: interleaving holds 1 + (p-1)/(p v) times the activations of 1F1B,
// here in chunks: 8 (1 + 7/16) 2 = 23 and 8 (1 + 7/24) 3 = 31.
TEST(Order, OfInterleaved1F1BHoldsTheActivationsOfKorthikantisFormula) {
  EXPECT_EQ(in_flight(orders::interleaved({8, 96, 2}).ranks[0]), 23);
  EXPECT_EQ(in_flight(orders::interleaved({8, 96, 3}).ranks[0]), 31);
}

TEST(Order, OfInterleaved1F1BHoldsNoMoreThanItsWarmUpWhenThereIsOneGroup) {
  const Schedule schedule = orders::interleaved({4, 4, 2});
  EXPECT_EQ(in_flight(schedule.ranks[0]), 8);  // (4 - 0 - 1) 2 + (2 - 1) 4 = 10 > 8 in all
  EXPECT_EQ(in_flight(schedule.ranks[3]), 5);  // 0 + 4, and the one whose backward comes next
}

TEST(Order, OfInterleaved1F1BWithOneChunkIs1F1B) {
  EXPECT_TRUE(same(orders::interleaved({4, 7, 1}), orders::one_f_one_b({4, 7})));
}

TEST(Order, OfInterleaved1F1BNeedsFullGroupsOfMicrobatches) {
  const std::string error = error_of(plan_of(ScheduleName::interleaved, 4, 2, 10));
  EXPECT_THAT(error, HasSubstr("microbatches = 10, pp = 4"));
  EXPECT_THAT(error, HasSubstr("8 or 12 microbatches"));
  EXPECT_THAT(error_of(plan_of(ScheduleName::interleaved, 4, 2, 3)),
              HasSubstr("nearest legal: 4 microbatches"));
}

TEST(Order, RejectsPlansThatNameNone) {
  EXPECT_THAT(error_of(plan_of(ScheduleName::one_f_one_b, 4, 2, 8)), HasSubstr("vpp = 2"));
  EXPECT_THAT(error_of(plan_of(ScheduleName::one_f_one_b, 0, 1, 8)), HasSubstr("pp = 0"));
  EXPECT_THAT(error_of(plan_of(ScheduleName::one_f_one_b, 1000, 1000, 8)), HasSubstr("65535"));
  EXPECT_THAT(error_of(plan_of(ScheduleName::gpipe, 2, 1, 0)), HasSubstr("microbatches"));
  EXPECT_THAT(error_of(plan_of(ScheduleName::gpipe, 2, 1, 4, 0)), HasSubstr("dp = 0"));
}

// Figures of the same two public generators, in microbatches of a full stage.
TEST(Order, HoldsTheActivationsOfPublicGenerators) {
  EXPECT_DOUBLE_EQ(activations(orders::one_f_one_b({8, 96})), 8);
  EXPECT_DOUBLE_EQ(activations(orders::interleaved({8, 96, 2})), 11.5);
  EXPECT_NEAR(activations(orders::interleaved({8, 96, 3})), 10.33, 0.005);
  EXPECT_DOUBLE_EQ(activations(orders::zb_h1({8, 96})), 8);
  EXPECT_DOUBLE_EQ(activations(orders::zb_h2({8, 96})), 15);
  EXPECT_DOUBLE_EQ(activations(orders::zb_v({8, 96})), 8);
  EXPECT_DOUBLE_EQ(activations(orders::v_half({8, 96})), 5);
  EXPECT_DOUBLE_EQ(activations(orders::v_min({8, 96})), 4);
}

// DeepSeek's table of DualPipeV: PP + 1 chunks for PP stages.
TEST(Order, OfDualPipeVHoldsOneChunkMoreThanThereAreStages) {
  EXPECT_DOUBLE_EQ(activations(orders::dualpipe_v({8, 96})), 17 / 2.0);
}

TEST(Order, OfInterleaved1F1BTakesAGroupThroughAChunkAndTheRestInTheLastGroup) {
  const Schedule schedule = orders::interleaved({2, 5, 2, 3});
  std::string forwards;
  for (const Op& op : schedule.ranks[0].ops())
    if (op.kind == OpKind::forward) forwards += to_string(op) + " ";
  EXPECT_EQ(forwards, "0F0 0F1 0F2 2F0 2F1 2F2 0F3 0F4 2F3 2F4 ");
}

TEST(Order, OfInterleaved1F1BRejectsGroupsThatStarveTheLastOne) {
  EXPECT_THROW(orders::interleaved({4, 9, 2, 8}), InputError);
  EXPECT_THROW(orders::interleaved({4, 8, 2, 3}), InputError);
  EXPECT_THROW(orders::interleaved({4, 8, 2, 9}), InputError);
}

TEST(Order, OfDualPipeVNeedsTwoMicrobatchesARank) {
  EXPECT_THAT(error_of(plan_of(ScheduleName::dualpipe_v, 4, 2, 7)), HasSubstr("8 microbatches"));
}

TEST(Order, InVShapeNeedsTwoChunks) {
  EXPECT_THAT(error_of(plan_of(ScheduleName::zb_v, 4, 1, 8)), HasSubstr("vpp = 2"));
}

}  // namespace
}  // namespace rehearse
