// One process a rank over TCP, as torchrun starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processes.h"
#include "scratch.h"

namespace rehearse {
namespace {

void expect_to_train(const std::vector<std::string>& arguments, int size) {
  std::vector<std::string> command = {PROCESS_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::string log = scratch().file("rank");
  for (Process& rank : start_ranks(command, size, size, log)) EXPECT_EQ(rank.wait(60), 0) << rank.said();
}

class Degrees : public testing::TestWithParam<std::vector<int>> {};  // tp, pp, dp, ZeRO[, ep]

TEST_P(Degrees, TrainAsOneRankDoes) {
  const std::vector<int>& degrees = GetParam();
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    if (i == 4) arguments.emplace_back("ep");
    arguments.push_back(std::to_string(degrees[i]));
  }
  expect_to_train(arguments, degrees[0] * degrees[1] * degrees[2]);
}

TEST(Processes, TrainIn16BitsAsOneRankDoes) {
  for (const char* precision : {"bf16", "fp16"}) expect_to_train({"1", "2", "2", "1", precision}, 4);
}

TEST(Processes, SkipTheStepOfGradientsThatOverflow) {
  expect_to_train({"1", "2", "2", "1", "fp16", "overflow"}, 4);
}

TEST(Processes, TrainWithTheHostsMemoryAsOneRankDoes) {
  expect_to_train({"1", "2", "1", "0", "activations"}, 2);
  expect_to_train({"1", "2", "2", "1", "optimizer"}, 4);
  expect_to_train({"1", "1", "2", "2", "optimizer"}, 2);
}

INSTANTIATE_TEST_SUITE_P(Processes, Degrees,
                         testing::Values(std::vector{1, 2, 1, 0}, std::vector{2, 1, 1, 0},
                                         std::vector{1, 1, 2, 3}, std::vector{2, 2, 1, 0},
                                         std::vector{1, 2, 2, 1}, std::vector{2, 1, 2, 2},
                                         std::vector{1, 1, 2, 0, 2}, std::vector{2, 1, 2, 1, 2}));

// Every rank uses the first GPU. NCCL allows that for processes that declare different machines.
TEST(Processes, TrainOverNcclOnOneGpuAsOneRankDoes) {
  for (const std::vector<std::string>& split : {std::vector<std::string>{"1", "2", "1", "0"},
                                                {"2", "1", "1", "0"},
                                                {"1", "1", "2", "3"},
                                                {"1", "1", "2", "1", "bf16"},
                                                {"1", "1", "2", "1", "fp16"}}) {
    std::vector<std::string> command = {PROCESS_PROGRAM};
    command.insert(command.end(), split.begin(), split.end());
    command.emplace_back("cuda");
    const int port = free_port();
    std::vector<Process> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      Process::Variables environment = as_torchrun(rank, 2, port);
      environment.insert(environment.end(), {{"LOCAL_RANK", "0"}, {"NCCL_HOSTID", std::to_string(rank)}});
      ranks.emplace_back(command, environment, scratch().file("nccl-" + std::to_string(rank)));
    }
    for (Process& rank : ranks) {
      const int code = rank.wait(120);
      if (code == 77) GTEST_SKIP() << rank.said();
      EXPECT_EQ(code, 0) << rank.said();
    }
  }
}

}  // namespace
}  // namespace rehearse
