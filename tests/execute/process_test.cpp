// One process a rank over TCP, as torchrun starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "processes.h"

namespace rehearse {
namespace {

void expect_to_train(const std::vector<std::string>& arguments, int size) {
  std::vector<std::string> command = {PROCESS_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::string log =
      std::filesystem::temp_directory_path() / ("rehearse-" + std::to_string(getpid()) + "-rank");
  for (Process& rank : start_ranks(command, size, size, log)) EXPECT_EQ(rank.wait(60), 0) << rank.said();
}

class Degrees : public testing::TestWithParam<std::vector<int>> {};  // tp, pp, dp, ZeRO[, ep]

TEST_P(Degrees, TrainAsOneRankDoes) {
  const std::vector<int>& degrees = GetParam();
  std::vector<std::string> arguments;
  for (const int degree : degrees) arguments.push_back(std::to_string(degree));
  expect_to_train(arguments, degrees[0] * degrees[1] * degrees[2]);
}

TEST(Processes, TrainInBf16AsOneRankDoes) {
  expect_to_train({"1", "2", "2", "1", "bf16"}, 4);
}

INSTANTIATE_TEST_SUITE_P(Processes, Degrees,
                         testing::Values(std::vector{1, 2, 1, 0}, std::vector{2, 1, 1, 0},
                                         std::vector{1, 1, 2, 3}, std::vector{2, 2, 1, 0},
                                         std::vector{1, 2, 2, 1}, std::vector{2, 1, 2, 2},
                                         std::vector{1, 1, 2, 0, 2}, std::vector{2, 1, 2, 1, 2}));

}  // namespace
}  // namespace rehearse
