#include "schedule/text.h"

#include <gmock/gmock.h>

#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "schedule/orders.h"
#include "shapes.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string text_error_of(const std::string& text) {
  try {
    read_text(text, "mine.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

RC_GTEST_PROP(Text, RoundTrips, ()) {
  const Schedule schedule = (*any_shape()).complete();
  RC_ASSERT(same(read_text(write_text(schedule), "round.txt"), schedule));
}

TEST(Text, RoundTripsRepeatedNamesForeignStreamsAndUnusualWaits) {
  Schedule schedule{1, 1, 1, {}};
  RankOps& ops = schedule.ranks.emplace_back();
  Op forward = make_op(OpKind::forward, 0, 0);
  ops.add(forward);
  ops.add(forward, {0});
  forward.stream = Stream::gradient;
  ops.add(forward, {1, 0});
  const std::string text = write_text(schedule);
  EXPECT_EQ(text, "rank 0: 0F0 0F0(0F0) 0F0@gradient(0F0,#0)\n");
  EXPECT_TRUE(same(read_text(text, "odd.txt"), schedule));
}

TEST(Text, WritesAnExplicitAbsenceOfWaits) {
  Schedule schedule{1, 1, 1, {}};
  RankOps& ops = schedule.ranks.emplace_back();
  ops.add(make_op(OpKind::recv_forward, 0, 0));
  ops.add(make_op(OpKind::forward, 0, 0));
  EXPECT_EQ(write_text(schedule), "rank 0: 0RECV_F0 0F0()\n");
  EXPECT_TRUE(same(read_text(write_text(schedule), "none.txt"), schedule));
}

TEST(Text, ErrorsSayWhereAndWhat) {
  EXPECT_THAT(text_error_of("rank 0: 0F0 0X0\n"),
              AllOf(HasSubstr("mine.txt"), HasSubstr("rank 0, op 1"), HasSubstr("0X0")));
  EXPECT_THAT(text_error_of("rank 0: 0F0\nrank 2: 1F0\n"), AllOf(HasSubstr("rank 1:"), HasSubstr("rank 2:")));
  EXPECT_THAT(text_error_of("rank 0: 0F0(0B0)\n"), HasSubstr("a wait names an earlier op"));
  EXPECT_THAT(text_error_of("rank 0: 0F0(#0)\n"), HasSubstr("index of an earlier op"));
  EXPECT_THAT(text_error_of("rank 0: 0F0 0F1(0F0\n"), HasSubstr("waits end with )"));
  EXPECT_THAT(text_error_of("rank 0: 0F0.2\n"), HasSubstr("a part is written"));
  EXPECT_THAT(text_error_of("rank 0: 0F0.2/2\n"), HasSubstr("part below parts"));
  EXPECT_THAT(text_error_of("rank 0: 0F0@gradeint\n"), HasSubstr("nearest legal: gradient"));
  EXPECT_THAT(text_error_of(""), HasSubstr("at least one action"));
}

RC_GTEST_PROP(Text, OfAnyContentIsReadOrRejectedWithAnInputError, ()) {
  std::string text = write_text(orders::one_f_one_b({2, 3}));
  const std::size_t at = *rc::gen::inRange<std::size_t>(0, text.size());
  text[at] = *rc::gen::character<char>();
  try {
    read_text(text, "noise.txt");
  } catch (const InputError&) {
    RC_SUCCEED("rejected");
  }
}

}  // namespace
}  // namespace rehearse
