// Processes that speak over TCP say the same as ranks that share memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processes.h"
#include "scratch.h"

namespace rehearse::kernels {
namespace {

std::string log_of(const std::string& test) {
  return scratch().file(test + "-rank");
}

TEST(Tcp, CollectivesOfProcessesEqualSumsByHand) {
  for (const int size : {2, 3, 5}) {
    for (Process& rank : start_ranks({WORLD_PROGRAM, "tcp"}, size, size, log_of("tcp")))
      EXPECT_EQ(rank.wait(60), 0) << rank.said();
  }
}

}  // namespace
}  // namespace rehearse::kernels
