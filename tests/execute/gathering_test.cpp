// Data that processes exchange, with threads in their place.
#include "execute/gathering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace rehearse {
namespace {

// On every rank of three at once.
void on_ranks(const std::function<void(Gathering&, int rank)>& work, bool trusts_boot) {
  const auto device = kernels::open_cpu();
  const auto worlds = kernels::open_memory_worlds(3);
  std::vector<std::jthread> threads;
  for (const auto& world : worlds)
    threads.emplace_back([&] {
      Gathering gathering(*world, *device, trusts_boot);
      work(gathering, world->rank());
    });
}

TEST(Gathering, CollectsWhatEachRankGivesHoweverLongItIs) {
  on_ranks(
      [](Gathering& gathering, int rank) {
        const auto all =
            gathering.collect(std::vector<double>(static_cast<std::size_t>(2 - rank), rank + 0.5));
        if (rank > 0) {
          EXPECT_TRUE(all.empty());
          return;
        }
        EXPECT_EQ(all, (std::vector<std::vector<double>>{{0.5, 0.5}, {1.5}, {}}));
      },
      true);
}

TEST(Gathering, FindsClocksThatAreOneToAgreeWithinTheErrorItStates) {
  on_ranks(
      [](Gathering& gathering, int rank) {
        const std::vector<Clock> clocks = gathering.compare_clocks();
        if (rank > 0) {
          EXPECT_TRUE(clocks.empty());
          return;
        }
        EXPECT_THAT(gathering.how_clocks_compare(), testing::HasSubstr("round trips"));
        for (std::size_t other = 1; other < clocks.size(); ++other) {
          EXPECT_GT(clocks[other].error_s, 0);
          EXPECT_LT(clocks[other].error_s, 0.05);
          EXPECT_LE(std::abs(clocks[other].ahead_s), clocks[other].error_s);
        }
      },
      false);
}

TEST(Gathering, TrustsTheClockOfOneMachine) {
  on_ranks(
      [](Gathering& gathering, int rank) {
        const std::vector<Clock> clocks = gathering.compare_clocks();
        if (rank > 0) return;
        EXPECT_THAT(gathering.how_clocks_compare(), testing::HasSubstr("one clock"));
        for (const Clock& clock : clocks) EXPECT_EQ(clock.error_s, 0);
      },
      true);
}

}  // namespace
}  // namespace rehearse
