#include "cost/stage_times.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

ExpertPhases phases(double layers, double attention, double experts, double dispatch, double combine,
                    double taken = 0) {
  return {layers, attention, experts, dispatch, combine, taken};
}

TEST(HiddenExchanges, AreThoseThatTheOtherPassOutlasts) {
  const HiddenExchanges hidden = hidden_exchanges(phases(2, 4, 6, 2, 9), phases(2, 8, 10, 3, 6));
  EXPECT_DOUBLE_EQ(hidden.forward,
                   2 + 8);  // dispatch beside 10 of experts, 8 of combine's 9 beside attention
  EXPECT_DOUBLE_EQ(hidden.backward,
                   4 + 3);  // 4 of combine's 6 beside attention, dispatch beside 6 of experts
}

TEST(HiddenExchanges, LeaveTheKernelsWhatTheyTakeFromThem) {
  const HiddenExchanges hidden = hidden_exchanges(phases(1, 9, 9, 4, 4, 0.25), phases(1, 9, 9, 2, 2, 0.5));
  EXPECT_DOUBLE_EQ(hidden.forward, 0.75 * 8);
  EXPECT_DOUBLE_EQ(hidden.backward, 0.5 * 4);
}

TEST(HiddenExchanges, OfAsManyLayersAsBothPassesHave) {
  const HiddenExchanges hidden = hidden_exchanges(phases(4, 40, 40, 8, 8), phases(1, 10, 10, 2, 2));
  EXPECT_DOUBLE_EQ(hidden.forward, 4);
  EXPECT_DOUBLE_EQ(hidden.backward, 4);
  EXPECT_DOUBLE_EQ(hidden_exchanges(phases(4, 40, 40, 8, 8), {}).forward, 0);
  EXPECT_DOUBLE_EQ(hidden_exchanges({}, phases(4, 40, 40, 8, 8)).backward, 0);
}

TEST(TimeParts, AddAndScaleCauseByCause) {
  TimeParts parts{1, 2, 3, 4, 5, 6};
  parts += parts * 2;
  EXPECT_EQ(parts.compute, 3);
  EXPECT_EQ(parts.recompute, 6);
  EXPECT_EQ(parts.optimizer, 9);
  EXPECT_EQ(parts.tp, 12);
  EXPECT_EQ(parts.cp, 15);
  EXPECT_EQ(parts.ep, 18);
  EXPECT_EQ(parts.total(), 63);
}

}  // namespace
}  // namespace rehearse
