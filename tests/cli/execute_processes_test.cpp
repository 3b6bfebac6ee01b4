// One process a rank: one report, and a clear end when a rank goes, stops, or never comes.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <list>
#include <nlohmann/json.hpp>
#include <thread>

#include "processes.h"
#include "program.h"
#include "sanitized.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

std::vector<std::string> execute_with(const std::vector<std::string>& more) {
  std::vector<std::string> command = {REHEARSE, "execute", SOURCE_DIR "/scenarios/gpt-10m-2-cores.json",
                                      "--seq",  "16",      "--mbs",
                                      "1",      "--gbs",   "4"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

// Two ranks that train until somebody ends them.
struct LongRun {
  std::string trace = temporary_file("trace.json", "");
  std::vector<Process> ranks;
  // Waits until both ranks have computed for longer than they take to begin, or until one has ended.
  explicit LongRun(const std::string& timeout_s)
      : ranks(start_ranks(execute_with({"--iterations", "100000", "--timeout", timeout_s, "--trace", trace}),
                          2, 2, trace + ".log")) {
    constexpr int kTurns = 6000 * kSlower, kBegun_s = 2 * kSlower;
    const auto is_beginning = [](const Process& rank) { return rank.busy_seconds() < kBegun_s; };
    const auto has_ended = [](const Process& rank) { return rank.has_ended(); };
    for (int i = 0;
         i < kTurns && std::ranges::any_of(ranks, is_beginning) && std::ranges::none_of(ranks, has_ended);
         ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
};

TEST(ExecuteProcesses, ReportOnceFromRankZero) {
  const std::string log = temporary_file("log", "");
  std::vector<Process> ranks =
      start_ranks(execute_with({"--iterations", "2", "--warmup", "0", "--json"}), 2, 2, log);
  EXPECT_EQ(ranks[0].wait(60), 0) << ranks[0].said();
  EXPECT_EQ(ranks[1].wait(60), 0) << ranks[1].said();
  EXPECT_EQ(ranks[1].said(), "");
  const Json report = Json::parse(ranks[0].said());
  EXPECT_THAT(report["execution"]["ranks"].get<std::string>(), HasSubstr("torchrun"));
  EXPECT_LT(report["execution"]["clock_error_s"].get<double>(), 0.1);
  const Outcome threads = run_program(
      "execute scenarios/gpt-10m-2-cores.json --seq 16 --mbs 1 --gbs 4 --iterations 2 --warmup 0 --json");
  const Json expected = Json::parse(threads.out);
  for (std::size_t step = 0; step < 2; ++step)
    EXPECT_NEAR(report["execution"]["losses"][step].get<double>(),
                expected["execution"]["losses"][step].get<double>(), 1e-4);
}

TEST(ExecuteProcesses, EndAndKeepATraceWhenARankIsKilled) {
  for (const std::size_t victim : {0U, 1U}) {
    LongRun run("30");
    const std::size_t other = 1 - victim;
    run.ranks[victim].send(SIGKILL);
    EXPECT_EQ(run.ranks[other].wait(10 * kSlower), 1);
    EXPECT_THAT(run.ranks[other].said(),
                HasSubstr("rank " + std::to_string(victim) + " ended without a word"));
    std::ifstream trace(other == 0 ? run.trace : run.trace + ".rank1");
    EXPECT_GT(Json::parse(trace)["traceEvents"].size(), 1U);
  }
}

TEST(ExecuteProcesses, EndWhenARankIsStopped) {
  constexpr int kTimeout_s = 4 * kSlower;  // ranks may begin as far apart where others use the machine
  std::list<LongRun> runs;                 // they wait together
  for (const std::size_t victim : {0U, 1U})
    runs.emplace_back(std::to_string(kTimeout_s)).ranks[victim].send(SIGSTOP);
  auto run = runs.begin();
  for (const std::size_t victim : {0U, 1U}) {
    Process& other = (run++)->ranks[1 - victim];
    EXPECT_EQ(other.wait(20 * kSlower), 1);
    EXPECT_THAT(other.said(),
                AllOf(HasSubstr(fmt::format("no op has ended for {} s", kTimeout_s)),
                      HasSubstr(victim == 0 ? "rank 0 does not answer" : "rank 1 has not answered for")));
  }
}

TEST(ExecuteProcesses, EndWhenARankDoesNotCome) {
  const std::string log = temporary_file("log", "");
  std::vector<Process> ranks = start_ranks(execute_with({"--timeout", "1"}), 2, 1, log);
  EXPECT_EQ(ranks[0].wait(20 * kSlower), 1);
  EXPECT_THAT(ranks[0].said(), HasSubstr("rank 1 of 2 did not come within 1 s"));
}

TEST(ExecuteProcesses, MustBeAsManyAsThePlanHasRanks) {
  const std::string log = temporary_file("log", "");
  for (Process& rank : start_ranks(execute_with({}), 3, 3, log)) {
    EXPECT_EQ(rank.wait(20), 2);
    EXPECT_THAT(rank.said(), AllOf(HasSubstr("torchrun started 3 processes"), HasSubstr("2 processes")));
  }
}

TEST(ExecuteProcesses, RefuseAnEnvironmentThatContradictsItself) {
  const std::string log = temporary_file("log", "");
  Process rank(execute_with({}), {{"RANK", "5"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, log);
  EXPECT_EQ(rank.wait(20 * kSlower), 2);
  EXPECT_THAT(rank.said(), HasSubstr("rank 5 of 2 ranks"));
}

}  // namespace
}  // namespace rehearse
