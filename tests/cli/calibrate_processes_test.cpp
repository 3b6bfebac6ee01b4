// Messages are timed among processes that a launcher started: one profile, and a clear end when one goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "processes.h"
#include "program.h"
#include "sanitized.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

// A model with few gradients to reduce.
struct Started {
  std::string model = temporary_file("model.json", R"({"model_type": "llama", "hidden_size": 128,
    "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 1024})");
  std::string profile = temporary_file("profile.json", "");
  std::vector<Process> ranks;

  // Ranks `first_on_second` and up say that they are on another machine.
  Started(int size, int first_on_second, const std::vector<std::string>& more) {
    std::vector<std::string> command = {REHEARSE,  "calibrate", SOURCE_DIR "/scenarios/gpt-10m-2-cores.json",
                                        "--model", model,       "--pp",
                                        "1",       "--dp",      "2",
                                        "--seq",   "16",        "--mbs",
                                        "1",       "--gbs",     "4",
                                        "--cache", "warm",      "--fresh",
                                        "-o",      profile};
    command.insert(command.end(), more.begin(), more.end());
    const int port = free_port();
    for (int rank = 0; rank < size; ++rank) {
      Process::Variables environment = as_torchrun(rank, size, port);
      environment.emplace_back("NCCL_HOSTID", rank < first_on_second ? "one" : "two");
      ranks.emplace_back(command, environment, profile + ".log" + std::to_string(rank));
    }
  }

  Json measurement() const { return Json::parse(std::ifstream(profile))["measurement"]; }
};

TEST(CalibrateProcesses, TimeEveryGroupAndTheFirstWritesTheProfile) {
  Started run(3, 2, {"--seconds", "0.001"});
  for (Process& rank : run.ranks) EXPECT_EQ(rank.wait(60 * kSlower), 0) << rank.said();
  EXPECT_EQ(run.ranks[1].said(), "");
  EXPECT_EQ(run.ranks[2].said(), "");
  std::set<std::pair<int, int>> groups;
  const Json measurement = run.measurement();
  for (const Json& message : measurement["messages"])
    groups.emplace(message["members"].get<int>(), message.value("nodes", 1));
  EXPECT_EQ(groups, (std::set<std::pair<int, int>>{{2, 1}, {2, 2}}));
  EXPECT_EQ(measurement["beside"].size(), 2U);  // within a machine and across
  EXPECT_THAT(run.ranks[0].said(), HasSubstr("crossed machines"));
  const Json profile = Json::parse(std::ifstream(run.profile));
  EXPECT_FALSE(profile["gemm"]["fp32"].empty());
}

TEST(CalibrateProcesses, EndWhenAnotherIsKilledOrStopped) {
  for (const int ending : {SIGKILL, SIGSTOP}) {
    Started run(2, 2, {"--seconds", "100", "--timeout", std::to_string(2 * kSlower)});
    for (int i = 0; i < 1000 * kSlower && run.ranks[1].busy_seconds() < 0.5; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    run.ranks[1].send(ending);
    EXPECT_EQ(run.ranks[0].wait(20 * kSlower), 1) << run.ranks[0].said();
    EXPECT_THAT(run.ranks[0].said(), HasSubstr("rank"));
  }
}

TEST(CalibrateProcesses, AreInterruptedTogetherAndGoOn) {
  Started run(2, 2, {"--seconds", "100"});
  for (const Process& rank : run.ranks) rank.await_handlers();
  for (int i = 0; i < 1000 * kSlower && run.ranks[1].busy_seconds() < 0.5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  run.ranks[1].send(SIGINT);
  EXPECT_EQ(run.ranks[0].wait(30 * kSlower), 130) << run.ranks[0].said();
  EXPECT_EQ(run.ranks[1].wait(30 * kSlower), 130) << run.ranks[1].said();
  EXPECT_THAT(run.ranks[0].said(), HasSubstr("the same command continues"));
}

TEST(CalibrateProcesses, DivideNoGpuAmongThemselves) {
  Started run(2, 2, {"--device", "cuda", "--parts", "2"});
  for (Process& rank : run.ranks) EXPECT_EQ(rank.wait(30 * kSlower), 2);
  EXPECT_THAT(run.ranks[0].said(), HasSubstr("--parts"));
}

}  // namespace
}  // namespace rehearse
