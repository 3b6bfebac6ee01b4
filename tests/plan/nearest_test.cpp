#include "plan/nearest.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(NearestMultiples, LieBelowAndAbove) {
  EXPECT_EQ(nearest_multiples(10, 100, 4), "8 or 12");
  EXPECT_EQ(nearest_multiples(3, 100, 4), "4");
  EXPECT_EQ(nearest_multiples(-3, 100, 4), "4");
  EXPECT_EQ(nearest_multiples(99, 100, 40), "80");
  EXPECT_EQ(nearest_multiples(1000, 100, 40), "80");
  EXPECT_EQ(nearest_multiples(7, 100, 101), "none");
}

TEST(NearestMultiples, AreFoundHoweverFarAway) {
  constexpr std::int64_t kUnit = 1'000'000'007, kMost = std::int64_t{1} << 60;
  EXPECT_EQ(nearest_multiples(kUnit * kUnit / 2, kMost, kUnit), "500000006500000021 or 500000007500000028");
}

TEST(NearestMultiples, AreWhatASearchFinds) {
  for (std::int64_t wanted = -5; wanted < 40; ++wanted)
    for (std::int64_t unit = 1; unit < 20; ++unit)
      EXPECT_EQ(nearest_multiples(wanted, 30, unit),
                nearest_legal(wanted, 30, [unit](std::int64_t n) { return n % unit == 0; }))
          << wanted << " " << unit;
}

}  // namespace
}  // namespace rehearse
