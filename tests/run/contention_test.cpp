// Flows that meet on a link share it.
#include <gtest/gtest.h>

#include "cases.h"
#include "in_child.h"
#include "run/simulate.h"

namespace rehearse {
namespace {

// Rank 1 of three sends an activation to rank 2 and a gradient to rank 0, both from time 0.
struct TwoMessages {
  Plan plan = pipeline_plan(3, 1, 1);
  Schedule schedule;
  Tasks tasks;
  Loads loads;

  TwoMessages(LinkId forward_out, std::uint64_t forward_bytes, LinkId backward_out,
              std::uint64_t backward_bytes) {
    schedule.pp = schedule.stages = 3;
    schedule.microbatches = 1;
    schedule.ranks.resize(3);
    schedule.ranks[1].add({.kind = OpKind::send_forward, .stream = Stream::send_forward, .stage = 1}, {});
    schedule.ranks[1].add({.kind = OpKind::send_backward, .stream = Stream::send_backward, .stage = 1}, {});
    schedule.ranks[2].add({.kind = OpKind::recv_forward, .stream = Stream::recv_forward, .stage = 2}, {});
    schedule.ranks[0].add({.kind = OpKind::recv_backward, .stream = Stream::recv_backward, .stage = 0}, {});
    tasks = derive_tasks(schedule, plan);
    loads.fixed_s = {0, 0};
    loads.transfer_s = {0, 0};
    loads.first_flow = {0, 1, 2};
    loads.flows = {{{forward_out, 2}, forward_bytes}, {{backward_out, 3}, backward_bytes}};
    loads.capacity = {1e9, 1e9, 1e9, 1e9};
    loads.ends = {{0}, {1}, {2}, {3}};
  }

  // Ends of the two messages.
  std::vector<double> ends() const {
    const Timeline timeline = simulate(schedule, tasks, loads);
    return {timeline.ranks[1].spans[0].end, timeline.ranks[1].spans[1].end};
  }
};

TEST(Contention, TwoMessagesOfOneGigabyteOnOneLinkOfOneGigabyteASecondTakeTwoSeconds) {
  const std::vector<double> ends = TwoMessages(0, 1'000'000'000, 0, 1'000'000'000).ends();
  EXPECT_NEAR(ends[0], 2.0, 1e-9);
  EXPECT_NEAR(ends[1], 2.0, 1e-9);
}

TEST(Contention, OnLinksOfTheirOwnTheyTakeOneSecond) {
  const std::vector<double> ends = TwoMessages(0, 1'000'000'000, 1, 1'000'000'000).ends();
  EXPECT_NEAR(ends[0], 1.0, 1e-9);
  EXPECT_NEAR(ends[1], 1.0, 1e-9);
}

TEST(Contention, TheLongerMessageSpeedsUpWhenTheShorterHasEnded) {
  const std::vector<double> ends = TwoMessages(0, 1'000'000'000, 0, 500'000'000).ends();
  EXPECT_NEAR(ends[1], 1.0, 1e-9);  // half the rate until both have moved half a gigabyte
  EXPECT_NEAR(ends[0], 1.5, 1e-9);
}

TEST(Contention, ALatencyDelaysWithoutUsingTheLink) {
  TwoMessages messages(0, 1'000'000'000, 0, 1'000'000'000);
  messages.loads.fixed_s[1] = 0.5;
  const std::vector<double> ends = messages.ends();
  EXPECT_NEAR(ends[0], 1.5, 1e-9);  // alone for half a second, then at half rate
  EXPECT_NEAR(ends[1], 2.0, 1e-9);
}

}  // namespace
}  // namespace rehearse
