#include "search/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace rehearse {
namespace {

TEST(InParallel, EveryIndexIsWorkedOnceByAThreadInRange) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> done(1000);
    std::atomic<bool> in_range = true;
    in_parallel(done.size(), threads, [&](int thread, std::size_t i) {
      if (thread < 0 || thread >= threads) in_range = false;
      ++done[i];
    });
    EXPECT_TRUE(in_range);
    for (const auto& count : done) EXPECT_EQ(count, 1);
  }
}

TEST(InParallel, AnExceptionEndsTheLoopAndIsThrownAgain) {
  const auto work = [](int, std::size_t i) {
    if (i == 17) throw std::runtime_error("seventeen");
  };
  EXPECT_THROW(in_parallel(1000, 3, work), std::runtime_error);
}

TEST(InParallel, NothingIsNoWork) {
  in_parallel(0, 4, [](int, std::size_t) { FAIL(); });
}

}  // namespace
}  // namespace rehearse
