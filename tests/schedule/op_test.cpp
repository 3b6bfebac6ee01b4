#include <gmock/gmock.h>

#include <stdexcept>

#include "schedule/schedule.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Op, IsNamedAsPyTorchNamesActions) {
  EXPECT_EQ(to_string(make_op(OpKind::forward, 2, 0)), "2F0");
  EXPECT_EQ(to_string(make_op(OpKind::send_backward, 1, 3)), "1SEND_B3");
  EXPECT_EQ(to_string(make_op(OpKind::recv_forward, 10, 12)), "10RECV_F12");
}

TEST(Op, OfTheWholeIterationHasNoMicrobatchInItsName) {
  EXPECT_EQ(to_string(make_op(OpKind::reduce_grad, 0)), "0REDUCE_GRAD");
  EXPECT_EQ(to_string(make_op(OpKind::reduce_tied, 3)), "3REDUCE_TIED");
  EXPECT_EQ(to_string(make_op(OpKind::step, 1)), "1STEP");
}

TEST(Op, PartOfSeveralIsNamedWithItsPart) {
  Op op = make_op(OpKind::backward, 1, 7);
  op.part = 2;
  op.parts = 4;
  EXPECT_EQ(to_string(op), "1B7.2");
}

TEST(Op, RunsOnTheStreamOfItsKind) {
  EXPECT_EQ(make_op(OpKind::backward_weight, 0, 0).stream, Stream::compute);
  EXPECT_EQ(make_op(OpKind::step, 0).stream, Stream::compute);
  EXPECT_EQ(make_op(OpKind::recv_backward, 0, 0).stream, Stream::recv_backward);
  EXPECT_EQ(make_op(OpKind::reduce_tied, 0).stream, Stream::gradient);
  EXPECT_EQ(to_string(Stream::send_forward), "send_forward");
}

TEST(RankOps, KeepsTheWaitsOfEachOp) {
  RankOps ops;
  ops.add(make_op(OpKind::recv_forward, 1, 0));
  ops.add(make_op(OpKind::recv_forward, 1, 1));
  ops.add(make_op(OpKind::forward, 1, 0), {0, -1, 1});
  ops.add(make_op(OpKind::send_forward, 1, 0), {2});
  EXPECT_THAT(ops.waits(ops[1]), IsEmpty());
  EXPECT_THAT(ops.waits(ops[2]), ElementsAre(0, 1));
  EXPECT_THAT(ops.waits(ops[3]), ElementsAre(2));
}

TEST(RankOps, RefusesToWaitForItselfForALaterOpOrForNone) {
  RankOps ops;
  ops.add(make_op(OpKind::forward, 0, 0));
  EXPECT_THROW(ops.add(make_op(OpKind::forward, 0, 1), {1}), std::logic_error);
  EXPECT_THROW(ops.add(make_op(OpKind::forward, 0, 1), {2}), std::logic_error);
  EXPECT_THROW(ops.add(make_op(OpKind::forward, 0, 1), {-2}), std::logic_error);
}

}  // namespace
}  // namespace rehearse
