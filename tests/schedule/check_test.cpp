#include "schedule/check.h"

#include <gmock/gmock.h>

#include <algorithm>

#include <rapidcheck/gtest.h>

#include <ctime>

#include "base/error.h"
#include "sanitized.h"
#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"
#include "shapes.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

const Plan kPlan = plan_of(ScheduleName::one_f_one_b, 2, 1, 4);

Schedule good() {
  return complete_schedule(kPlan, {true, true, 2, {1, 1}});
}

bool any_names(const std::vector<std::string>& faults, const std::string& name) {
  return std::ranges::any_of(faults,
                             [&](const std::string& fault) { return fault.find(name) != std::string::npos; });
}

RC_GTEST_PROP(Check, FindsNothingInCompleteSchedules, ()) {
  const PipelineShape shape = *any_shape();
  const auto faults = check_schedule(shape.complete(), shape.plan);
  RC_ASSERT(faults == std::vector<std::string>{});
}

// A rank and the position of a compute op or a message in its list.
std::pair<int, std::size_t> any_op(const Schedule& schedule) {
  const int rank = *rc::gen::inRange(0, schedule.pp);
  const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank)];
  const auto at = *rc::gen::suchThat(rc::gen::inRange<std::size_t>(0, ops.size()),
                                     [&](std::size_t i) { return has_microbatch(ops[i].kind); });
  return {rank, at};
}

RC_GTEST_PROP(Check, NamesTheOpThatWasDropped, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule schedule = shape.complete();
  const auto [rank, at] = any_op(schedule);
  auto picked = all_ops(schedule, rank);
  picked.erase(picked.begin() + static_cast<std::ptrdiff_t>(at));
  Op dropped = schedule.ranks[static_cast<std::size_t>(rank)][at];
  dropped.parts = 1;
  const auto faults = check_schedule(with_list(schedule, rank, picked), shape.plan);
  RC_ASSERT(any_names(faults, to_string(dropped)));
}

RC_GTEST_PROP(Check, NamesTheOpThatWasRepeated, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule schedule = shape.complete();
  const auto [rank, at] = any_op(schedule);
  auto picked = all_ops(schedule, rank);
  picked.insert(picked.begin() + static_cast<std::ptrdiff_t>(at), at);
  Op repeated = schedule.ranks[static_cast<std::size_t>(rank)][at];
  repeated.parts = 1;
  const auto faults = check_schedule(with_list(schedule, rank, picked), shape.plan);
  RC_ASSERT(any_names(faults, to_string(repeated)));
}

RC_GTEST_PROP(Check, NamesAForwardSwappedWithItsBackward, ()) {
  const PipelineShape shape = *any_shape();
  const Schedule order = add_transfers(make_order(shape.plan), shape.plan.overlap_p2p);
  const int rank = *rc::gen::inRange(0, order.pp);
  const int microbatch = *rc::gen::inRange(0, order.microbatches);
  const std::string f = to_string(make_op(OpKind::forward, rank, microbatch));
  const bool whole =
      std::ranges::any_of(order.ranks[static_cast<std::size_t>(rank)].ops(), [&](const Op& op) {
        return op.kind == OpKind::backward && op.stage == rank && op.microbatch == microbatch;
      });
  const OpKind backward = whole ? OpKind::backward : OpKind::backward_input;
  const std::string b = to_string(make_op(backward, rank, microbatch));
  auto picked = all_ops(order, rank);
  std::swap(picked[position(order, rank, f)], picked[position(order, rank, b)]);
  const auto faults = check_schedule(with_list(order, rank, picked), shape.plan);
  RC_ASSERT(any_names(faults, b + " before " + f));
}

RC_GTEST_PROP(Check, NamesTwoReceivesThatWereExchanged, ()) {
  const PipelineShape shape = *any_shape();
  RC_PRE(shape.plan.pp > 1 && shape.plan.microbatches() > 1);
  const Schedule schedule = add_transfers(make_order(shape.plan), true);
  const int rank = *rc::gen::inRange(1, schedule.pp);
  const int first = *rc::gen::inRange(0, schedule.microbatches - 1);
  const std::string a = to_string(make_op(OpKind::recv_forward, rank, first));
  const std::string b = to_string(make_op(OpKind::recv_forward, rank, first + 1));
  auto picked = all_ops(schedule, rank);
  std::swap(picked[position(schedule, rank, a)], picked[position(schedule, rank, b)]);
  const auto faults = check_schedule(with_list(schedule, rank, picked), shape.plan);
  RC_ASSERT(any_names(faults, "but the receiver has " + b + " there"));
}

TEST(Check, SaysWhichOpIsMissing) {
  auto picked = all_ops(good(), 1);
  picked.erase(picked.begin() + static_cast<std::ptrdiff_t>(position(good(), 1, "1B2")));
  EXPECT_THAT(check_schedule(with_list(good(), 1, picked), kPlan),
              ElementsAre("1B2 is missing", "1SEND_B2 on rank 1 needs 1B2, which that rank does not have"));
}

TEST(Check, SaysWhichReceiveIsMissing) {
  auto picked = all_ops(good(), 1);
  picked.erase(picked.begin() + static_cast<std::ptrdiff_t>(position(good(), 1, "1RECV_F3")));
  EXPECT_THAT(check_schedule(with_list(good(), 1, picked), kPlan),
              ElementsAre("0SEND_F3 on rank 0 has no 1RECV_F3 on rank 1",
                          "1F3 on rank 1 needs 1RECV_F3, which that rank does not have"));
}

TEST(Check, SaysWhichMessagesWereExchanged) {
  auto picked = all_ops(good(), 1);
  std::swap(picked[position(good(), 1, "1RECV_F0")], picked[position(good(), 1, "1RECV_F1")]);
  EXPECT_THAT(check_schedule(with_list(good(), 1, picked), kPlan),
              Contains("message 0 from rank 0 to rank 1 is 0SEND_F0, but the receiver has 1RECV_F1 there"));
}

TEST(Check, FindsAnOpThatReadsBeforeItsInputHasArrived) {
  const Schedule schedule = read_text(
      "rank 0: 0F0 0SEND_F0 0RECV_B0 0B0()\n"
      "rank 1: 1RECV_F0 1F0 1B0 1SEND_B0\n",
      "race.txt");
  EXPECT_THAT(check_schedule(schedule, plan_of(ScheduleName::gpipe, 2, 1, 1)),
              ElementsAre("0B0 on rank 0 does not wait for 0RECV_B0"));
}

TEST(Check, FindsAnOpThatWaitsForTheMessageJustBeforeItsOwn) {
  const Schedule schedule = read_text(
      "rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
      "rank 1: 1RECV_F0 1RECV_F1 1F0 1F1(1RECV_F0) 1B0 1SEND_B0 1B1 1SEND_B1\n",
      "late.txt");
  EXPECT_THAT(check_schedule(schedule, plan_of(ScheduleName::gpipe, 2, 1, 2)),
              ElementsAre("1F1 on rank 1 does not wait for 1RECV_F1"));
}

TEST(Check, AcceptsAWaitThroughAnotherOp) {
  const Schedule schedule = read_text(
      "rank 0: 0F0 0SEND_F0 0RECV_B0 0B0\n"
      "rank 1: 1RECV_F0 1REDUCE_TIED(1RECV_F0) 1F0(1REDUCE_TIED) 1B0 1SEND_B0\n",
      "through.txt");
  EXPECT_THAT(check_schedule(schedule, plan_of(ScheduleName::gpipe, 2, 1, 1)),
              Not(Contains(HasSubstr("1F0 on rank 1"))));
}

TEST(Check, FindsAStepThatDoesNotWaitForAReduction) {
  std::string text = write_text(good());
  text.replace(text.find("0STEP"), 5, "0STEP()");
  EXPECT_THAT(check_schedule(read_text(text, "step.txt"), kPlan),
              ElementsAre("0STEP on rank 0 does not wait for 0REDUCE_GRAD"));
}

TEST(Check, FindsAReductionThatIsMissing) {
  auto picked = all_ops(good(), 1);
  picked.erase(picked.begin() + static_cast<std::ptrdiff_t>(position(good(), 1, "1REDUCE_GRAD")));
  EXPECT_THAT(check_schedule(with_list(good(), 1, picked), kPlan),
              ElementsAre("1REDUCE_GRAD is there 0 times, not once"));
}

TEST(Check, FindsATiedReductionWithOneMember) {
  auto picked = all_ops(good(), 1);
  picked.erase(picked.begin() + static_cast<std::ptrdiff_t>(position(good(), 1, "1REDUCE_TIED")));
  EXPECT_THAT(check_schedule(with_list(good(), 1, picked), kPlan),
              ElementsAre("REDUCE_TIED joins two ranks, but there is 0REDUCE_TIED on rank 0",
                          "1STEP on rank 1 does not wait for 1REDUCE_GRAD"));
}

TEST(Check, FindsMessagesWithoutANeighbour) {
  Schedule schedule = good();
  schedule.ranks[1].add(make_op(OpKind::send_forward, 1, 0));
  schedule.ranks[0].add(make_op(OpKind::recv_forward, 0, 0));
  schedule.ranks[0].add(make_op(OpKind::recv_forward, 1, 0));
  EXPECT_THAT(
      check_schedule(schedule, kPlan),
      IsSupersetOf({"1SEND_F0 on rank 1 has no neighbour stage", "0RECV_F0 on rank 0 has no neighbour stage",
                    "1RECV_F0 is on rank 0, which does not run stage 1"}));
}

TEST(Check, FindsAStageOnTwoRanks) {
  const Schedule schedule = read_csv("0F0,0B0\n0F1,0B1\n", "two.csv");
  Plan plan = plan_of(ScheduleName::gpipe, 2, 1, 2);
  Schedule wide = schedule;
  wide.stages = 2;
  EXPECT_THAT(check_schedule(wide, plan),
              Contains("stage 0 runs on rank 0 and, for microbatch 1, on rank 1"));
}

TEST(Check, FindsBesideAWholeBackwardItsHalves) {
  const Schedule schedule = read_csv("0F0,0B0,0W0\n", "both.csv");
  EXPECT_THAT(check_schedule(schedule, plan_of(ScheduleName::gpipe, 1, 1, 1)),
              ElementsAre("0B0 appears together with I or W of the same microbatch"));
}

TEST(Check, AcceptsSplitBackwards) {
  const Schedule order = read_csv("0F0,0I0,0W0\n1F0,1I0,1W0\n", "split.csv");
  EXPECT_THAT(check_schedule(add_transfers(order, true), plan_of(ScheduleName::gpipe, 2, 1, 1)), IsEmpty());
}

TEST(Check, ComparesTheSizeWithThePlans) {
  EXPECT_THAT(check_schedule(good(), plan_of(ScheduleName::one_f_one_b, 4, 1, 4)),
              ElementsAre("the schedule has 2 pipeline ranks, the plan 4",
                          "the schedule has 2 lists, the plan 4", "the schedule has 2 stages, the plan 4"));
}

TEST(Check, FindsOpsOutsideTheSchedule) {
  Schedule schedule = good();
  schedule.ranks[0].add(make_op(OpKind::forward, 7, 0));
  schedule.ranks[1].add(make_op(OpKind::forward, 1, -1));
  EXPECT_THAT(check_schedule(schedule, kPlan), ElementsAre("rank 0 has 7F0, but there are 2 stages",
                                                           "rank 1 has 1F-1, but there are 4 microbatches"));
}

TEST(Check, ListsTheFirstFaultsOfVeryMany) {
  const auto faults =
      check_schedule(orders::one_f_one_b({2, 100}), plan_of(ScheduleName::one_f_one_b, 2, 1, 100));
  EXPECT_EQ(faults.size(), 21u);
  EXPECT_EQ(faults.back(), "and 180 more faults");
}

TEST(Check, NamesTheHeadsOfACircle) {
  const Schedule schedule = read_text(
      "rank 0: 0F0 0SEND_F0 0RECV_B0 0B0 0F1 0SEND_F1 0RECV_B1 0B1\n"
      "rank 1: 1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n",
      "circle.txt");
  const auto faults = check_schedule(schedule, plan_of(ScheduleName::one_f_one_b, 2, 1, 2));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0],
            "deadlock with one queue per stream: 9 of 12 tasks can never begin; "
            "rank 0 is at 0RECV_B0, which waits for 1B0 on rank 1; "
            "rank 1 is at 1RECV_F1, which waits for 0F1 on rank 0\n"
            "rank 0: 0F0 0B0<- 0F1 0B1\n"
            "rank 1: 1F0 1F1<- 1B0 1B1\n");
}

// 1F1B whose neighbours both send before they receive.
TEST(Check, FindsADeadlockThatOnlyASingleMessageQueueHas) {
  const Schedule schedule = read_text(
      "rank 0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
      "rank 1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n",
      "crossed.txt");
  const auto faults = check_schedule(schedule, plan_of(ScheduleName::one_f_one_b, 2, 1, 2));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(
      faults[0],
      AllOf(HasSubstr(
                "deadlock when all messages of a rank share one queue, but not with one queue per stream"),
            HasSubstr("rank 0 is at 0SEND_F1, which waits for 1SEND_B0 on rank 1"),
            HasSubstr("rank 1 is at 1SEND_B0, which waits for 0SEND_F1 on rank 0"), HasSubstr("0B0<-")));
}

// 512 microbatches on 64 ranks with two chunks each: half a million ops.
double processor_s() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

TEST(Check, AndPassesTakeWellUnderASecondAtScale) {
  const Plan plan = plan_of(ScheduleName::interleaved, 64, 2, 512);
  const double begin_s = processor_s();
  const Schedule schedule = complete_schedule(plan, {true, true, 2, std::vector<int>(128, 4)});
  const double built_s = processor_s();
  EXPECT_THAT(check_schedule(schedule, plan), IsEmpty());
  const double checked_s = processor_s();
  RecordProperty("build_s", std::to_string(built_s - begin_s));
  RecordProperty("check_s", std::to_string(checked_s - built_s));
  EXPECT_LT(checked_s - begin_s, 5.0 * kSlower) << "a loose bound: quadratic work would take minutes";
}

}  // namespace
}  // namespace rehearse
