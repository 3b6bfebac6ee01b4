// No run with shared links ends before its lower bound, and static contention is in the bound.
#include "run/least_time.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "cases.h"

namespace rehearse {
namespace {

TEST(JacksonEnd, IsTheSumWhereJobsMeet) {
  std::vector<LinkJob> none, one = {{1, 2, 3}}, two = {{0, 2, 1}, {0, 3, 5}}, apart = {{0, 1, 0}, {4, 1, 0}};
  EXPECT_EQ(jackson_end(none), 0);
  EXPECT_EQ(jackson_end(one), 6);
  EXPECT_EQ(jackson_end(two), 8);  // the job with the longer tail first
  EXPECT_EQ(jackson_end(apart), 5);
}

// Carlier and Pinson 1989: the largest sum, over all subsets, of the least head, all lengths and the least
// tail.
double largest_of_subsets(const std::vector<LinkJob>& jobs) {
  double largest = 0;
  for (unsigned subset = 1; subset < 1u << jobs.size(); ++subset) {
    double head = std::numeric_limits<double>::infinity(), tail = head, length = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if ((subset >> i & 1) == 0) continue;
      head = std::min(head, jobs[i].head_s);
      tail = std::min(tail, jobs[i].tail_s);
      length += jobs[i].length_s;
    }
    largest = std::max(largest, head + length + tail);
  }
  return largest;
}

TEST(JacksonEnd, IsTheLargestOfAllSubsetsOfRandomJobs) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::vector<LinkJob> jobs(1 + random() % 8);
    for (LinkJob& job : jobs)
      job = {static_cast<double>(random() % 20), static_cast<double>(random() % 9),
             static_cast<double>(random() % 20)};
    const double expected = largest_of_subsets(jobs);
    EXPECT_EQ(jackson_end(jobs), expected);
  }
}

// Rank 1 of three sends a gigabyte forward through link 0, and one backward through link `backward_out`.
double least_of_two_messages(LinkId backward_out) {
  Schedule schedule;
  schedule.pp = schedule.stages = 3;
  schedule.microbatches = 1;
  schedule.ranks.resize(3);
  schedule.ranks[1].add({.kind = OpKind::send_forward, .stream = Stream::send_forward, .stage = 1}, {});
  schedule.ranks[1].add({.kind = OpKind::send_backward, .stream = Stream::send_backward, .stage = 1}, {});
  schedule.ranks[2].add({.kind = OpKind::recv_forward, .stream = Stream::recv_forward, .stage = 2}, {});
  schedule.ranks[0].add({.kind = OpKind::recv_backward, .stream = Stream::recv_backward, .stage = 0}, {});
  const Tasks tasks = derive_tasks(schedule, pipeline_plan(3, 1, 1));
  Loads loads;
  loads.fixed_s = {0, 0};
  loads.transfer_s = {1, 1};
  loads.first_flow = {0, 1, 2};
  loads.flows = {{{0, 2}, 1'000'000'000}, {{backward_out, 3}, 1'000'000'000}};
  loads.capacity = {1e9, 1e9, 1e9, 1e9};
  loads.ends = {{0}, {1}, {2}, {3}};
  return least_time(tasks, loads);
}

TEST(LeastTime, HoldsTheTimeOfAllMessagesOnALink) {
  EXPECT_NEAR(least_of_two_messages(0), 2, 1e-8);
  EXPECT_NEAR(least_of_two_messages(1), 1, 1e-8);
}

}  // namespace
}  // namespace rehearse
