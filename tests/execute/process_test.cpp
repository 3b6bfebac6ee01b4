// One process a rank over TCP, as torchrun starts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "processes.h"

namespace rehearse {
namespace {

class Degrees : public testing::TestWithParam<std::array<int, 4>> {};

TEST_P(Degrees, TrainAsOneRankDoes) {
  const auto [tp, pp, dp, zero] = GetParam();
  std::vector<std::string> command = {PROCESS_PROGRAM};
  for (const int degree : GetParam()) command.push_back(std::to_string(degree));
  const std::string log =
      std::filesystem::temp_directory_path() / ("rehearse-" + std::to_string(getpid()) + "-rank");
  const int size = tp * pp * dp;
  for (Process& rank : start_ranks(command, size, size, log)) EXPECT_EQ(rank.wait(60), 0) << rank.said();
}

INSTANTIATE_TEST_SUITE_P(Processes, Degrees,
                         testing::Values(std::array{1, 2, 1, 0}, std::array{2, 1, 1, 0},
                                         std::array{1, 1, 2, 3}, std::array{2, 2, 1, 0},
                                         std::array{1, 2, 2, 1}, std::array{2, 1, 2, 2}));

}  // namespace
}  // namespace rehearse
