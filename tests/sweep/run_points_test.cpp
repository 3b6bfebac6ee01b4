#include "sweep/run_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>

namespace rehearse {
namespace {

using Run = void (*)(const NextPoint&, const Evaluate&, int, const Stopped&, const Deliver&);

void in_processes(const NextPoint& next, const Evaluate& evaluate, int jobs, const Stopped& stopped,
                  const Deliver& deliver) {
  run_in_processes(next, evaluate, jobs, stopped, deliver);
}

class RunPoints : public ::testing::TestWithParam<std::pair<const char*, Run>> {
 protected:
  std::map<Point, Row> run(int count, const Evaluate& evaluate, int jobs) {
    std::map<Point, Row> rows;
    GetParam().second(
        first_points(count), evaluate, jobs, [this] { return stop_.load(); },
        [&](Point point, const Row& row) {
          EXPECT_TRUE(rows.emplace(point, row).second) << point << " was delivered twice";
        });
    return rows;
  }
  std::atomic<bool> stop_ = false;
};

TEST_P(RunPoints, EveryPointIsDeliveredOnceWhateverTheJobs) {
  for (const int jobs : {1, 3, 50}) {
    const auto rows = run(
        40,
        [](Point point) {
          return Row{RowState::done, "", {{"n", point * 0.1}}};
        },
        jobs);
    ASSERT_EQ(rows.size(), 40u);
    for (const auto& [point, row] : rows)
      EXPECT_EQ(row.report["n"].get<double>(), static_cast<double>(point) * 0.1);
  }
}

TEST_P(RunPoints, AnExceptionIsAFailedRowAndNoMore) {
  const auto rows = run(
      6,
      [](Point point) {
        if (point == 3) throw std::runtime_error("no such thing");
        return Row{};
      },
      2);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows.at(3).state, RowState::failed);
  EXPECT_EQ(rows.at(3).reason, "no such thing");
  EXPECT_EQ(rows.at(4).state, RowState::done);
}

TEST_P(RunPoints, NothingNewBeginsOnceStopped) {
  int delivered = 0;
  GetParam().second(
      first_points(1000),
      [](Point) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return Row{};
      },
      2, [this] { return stop_.load(); },
      [&](Point, const Row&) {
        if (++delivered == 5) stop_ = true;
      });
  EXPECT_GE(delivered, 5);
  EXPECT_LT(delivered, 1000);
}

TEST_P(RunPoints, WhatDeliverThrowsEndsTheRun) {
  EXPECT_THROW(GetParam().second(
                   first_points(100), [](Point) { return Row{}; }, 2, [this] { return stop_.load(); },
                   [](Point, const Row&) { throw std::runtime_error("disk full"); }),
               std::runtime_error);
}

TEST_P(RunPoints, NoPointsAreNoWork) {
  EXPECT_TRUE(run(
                  0, [](Point) { return Row{}; }, 2)
                  .empty());
}

INSTANTIATE_TEST_SUITE_P(Sweep, RunPoints,
                         ::testing::Values(std::pair<const char*, Run>{"InThreads", run_in_threads},
                                           std::pair<const char*, Run>{"InProcesses", in_processes}),
                         [](const auto& run) { return run.param.first; });

TEST(RunInProcesses, ACrashCostsOneRow) {
  std::map<Point, Row> rows;
  const Evaluate evaluate = [](Point point) {
    if (point == 1) raise(SIGKILL);
    if (point == 2) _exit(9);
    return Row{};
  };
  run_in_processes(
      first_points(4), evaluate, 2, [] { return false; },
      [&](Point point, const Row& row) { rows[point] = row; });
  EXPECT_EQ(rows[0].state, RowState::done);
  EXPECT_THAT(rows[1].reason, ::testing::HasSubstr("signal 9"));
  EXPECT_THAT(rows[2].reason, ::testing::HasSubstr("exit code 9"));
  EXPECT_EQ(rows[3].state, RowState::done);
}

TEST(RunInProcesses, WhatTakesTooLongCostsOneRow) {
  std::map<Point, Row> rows;
  const Evaluate evaluate = [](Point point) {
    if (point == 1) pause();
    return Row{};
  };
  run_in_processes(
      first_points(3), evaluate, 1, [] { return false; },
      [&](Point point, const Row& row) { rows[point] = row; }, 0.2);
  EXPECT_EQ(rows[0].state, RowState::done);
  EXPECT_EQ(rows[1].state, RowState::failed);
  EXPECT_EQ(rows[1].reason, "took longer than 0.2 s");
  EXPECT_EQ(rows[2].state, RowState::done);
}

// Slurm suspends a job so: all of its processes, for longer than the timeout of a row.
TEST(RunInProcesses, TimeInWhichTheJobIsStoppedIsNoRowsTime) {
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);
    int failed = 0;
    run_in_processes(
        first_points(4),
        [](Point point) {
          std::this_thread::sleep_for(std::chrono::milliseconds(point % 2 == 0 ? 300 : 600));
          return Row{};
        },
        4, [] { return false; }, [&](Point, const Row& row) { failed += row.state != RowState::done; }, 3);
    _exit(failed);
  }
  setpgid(job, job);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(-job, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(4));
  kill(-job, SIGCONT);
  int status = 0;
  waitpid(job, &status, 0);
  EXPECT_EQ(status, 0) << "rows that were late";
}

TEST_P(RunPoints, OutOfMemoryIsAFailedRowInPlainWords) {
  const auto rows = run(
      1, [](Point) -> Row { throw std::bad_alloc(); }, 1);
  EXPECT_EQ(rows.at(0).reason, "out of memory");
}

TEST(RunInProcesses, LongRowsComeWhole) {
  const std::string text(3'000'000, 'x');
  run_in_processes(
      first_points(3),
      [&](Point) {
        return Row{RowState::done, text, nullptr};
      },
      3, [] { return false; }, [&](Point, const Row& row) { EXPECT_EQ(row.reason, text); });
}

}  // namespace
}  // namespace rehearse
