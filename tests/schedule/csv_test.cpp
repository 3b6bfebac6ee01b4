#include <gmock/gmock.h>

#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "schedule/check.h"
#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const std::string& csv) {
  try {
    read_csv(csv, "mine.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

RC_GTEST_PROP(Csv, RoundTripsComputeOrders, ()) {
  const Schedule order = make_order((*any_shape()).plan);
  RC_ASSERT(same(read_csv(write_csv(order), "round.csv"), order));
}

RC_GTEST_PROP(Csv, RoundTripsTransfersThatOverlap, ()) {
  const Schedule schedule = add_transfers(make_order((*any_shape()).plan), true);
  RC_ASSERT(same(read_csv(write_csv(schedule), "round.csv"), schedule));
}

RC_GTEST_PROP(Csv, OfACompleteScheduleReadsAsOneThatRuns, ()) {
  const PipelineShape shape = *any_shape();
  const std::string csv = write_csv(shape.complete());
  const Schedule read = read_csv(csv, "round.csv");
  RC_ASSERT(write_csv(read) == csv);
  RC_ASSERT(check_schedule(read, shape.plan).empty());
}

TEST(Csv, ReadsPyTorchsExampleWithIdleSteps) {
  const Schedule order = read_csv("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,\n", "pytorch.csv");
  EXPECT_TRUE(same(order, orders::one_f_one_b({2, 2})));
}

TEST(Csv, ReadsWindowsLineEndsAndSpaces) {
  EXPECT_TRUE(same(read_csv("0F0, 0B0\r\n1F0 ,1B0\r\n\r\n", "crlf.csv"), orders::one_f_one_b({2, 1})));
}

TEST(Csv, LeavesOutWhatPyTorchDoesNotKnowAndWritesSplitOpsOnce) {
  const Schedule schedule =
      add_gradient_sync(add_transfers(orders::one_f_one_b({2, 1}), true), {true, true, 2, {2, 3}});
  EXPECT_EQ(write_csv(schedule),
            "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n"
            "1RECV_F0,1F0,1B0,1REDUCE_GRAD,1SEND_B0\n");
}

TEST(Csv, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(error_of("0F0,0F0x\n"), AllOf(HasSubstr("mine.csv: row 1, cell 2"), HasSubstr("\"0F0x\"")));
  EXPECT_THAT(error_of("0F0\n1SEND_X0\n"),
              AllOf(HasSubstr("row 2, cell 1"), HasSubstr("nearest legal: SEND_F")));
  EXPECT_THAT(error_of("F0\n"), HasSubstr("begins with its stage"));
  EXPECT_THAT(error_of("-1F0\n"), HasSubstr("begins with its stage"));
  EXPECT_THAT(error_of("70000F0\n"), HasSubstr("0 to 65534"));
  EXPECT_THAT(error_of("0F\n"), HasSubstr("followed by its microbatch"));
  EXPECT_THAT(error_of("0F99999999999\n"), HasSubstr("followed by its microbatch"));
  EXPECT_THAT(error_of("0REDUCE_GRAD0\n"), HasSubstr("nothing may follow"));
  EXPECT_THAT(error_of("0B0.1/2\n"), HasSubstr("nothing may follow"));
  EXPECT_THAT(error_of("0F0,0B0,0STEP\n"), HasSubstr("PyTorch knows no such action"));
  EXPECT_THAT(error_of("(0F1;B0)OVERLAP_F_B\n"), HasSubstr("begins with its stage"));
  EXPECT_THAT(error_of("0UNSHARDED\n"), HasSubstr("one of F, B, I, W"));
}

TEST(Csv, RejectsGaps) {
  EXPECT_THAT(error_of("0F0,2F0\n"), HasSubstr("stage 1 is missing"));
  EXPECT_THAT(error_of("0F0,0F2000000000\n"), HasSubstr("microbatch 1 is missing"));
  EXPECT_THAT(error_of(",,\n"), HasSubstr("at least one action"));
  EXPECT_THAT(error_of(""), HasSubstr("at least one action"));
}

}  // namespace
}  // namespace rehearse
