#include <gmock/gmock.h>

#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"

namespace rehearse {
namespace {

TEST(ComputeTable, AlignsTheStepsOfAllRanks) {
  EXPECT_EQ(compute_table(add_transfers(orders::one_f_one_b({3, 3}), true)),
            "rank 0: 0F0 0F1 0F2 0B0 0B1 0B2\n"
            "rank 1: 1F0 1F1 1B0 1F2 1B1 1B2\n"
            "rank 2: 2F0 2B0 2F1 2B1 2F2 2B2\n");
}

TEST(ComputeTable, MarksCells) {
  EXPECT_EQ(compute_table(orders::one_f_one_b({2, 2}), {{0, 2}, {1, 1}}),
            "rank 0: 0F0 0F1   0B0<- 0B1\n"
            "rank 1: 1F0 1B0<- 1F1   1B1\n");
}

TEST(ComputeTable, ShowsALongScheduleAroundItsMarks) {
  const std::string table = compute_table(orders::gpipe({1, 20}), {{0, 20}});
  EXPECT_EQ(
      table,
      "rank 0: ... 0F12 0F13 0F14 0F15 0F16 0F17 0F18 0F19 0B0<- 0B1 0B2 0B3 0B4 0B5 0B6 0B7 0B8 ...\n");
}

TEST(ComputeTable, OfNothingIsEmpty) {
  EXPECT_EQ(compute_table(Schedule{}), "");
}

}  // namespace
}  // namespace rehearse
