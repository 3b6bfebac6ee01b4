#include "plan/rules/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rehearse {
namespace {

std::string multiples(std::int64_t wanted, std::int64_t most, std::int64_t unit) {
  return in_words(multiples_around(wanted, most, unit));
}

TEST(MultiplesAround, LieBelowAndAbove) {
  EXPECT_EQ(multiples(10, 100, 4), "8 or 12");
  EXPECT_EQ(multiples(3, 100, 4), "4");
  EXPECT_EQ(multiples(-3, 100, 4), "4");
  EXPECT_EQ(multiples(99, 100, 40), "80");
  EXPECT_EQ(multiples(1000, 100, 40), "80");
}

TEST(MultiplesAround, OfMoreThanTheMostAreNone) {
  EXPECT_EQ(multiples(7, 100, 101), "");
}

TEST(MultiplesAround, AreFoundHoweverFarAway) {
  constexpr std::int64_t kUnit = 1'000'000'007, kMax = std::int64_t{1} << 60;
  EXPECT_EQ(multiples(kUnit * kUnit / 2, kMax, kUnit), "500000006500000021 or 500000007500000028");
}

TEST(MultiplesAround, AreWhatASearchFinds) {
  for (std::int64_t wanted = -5; wanted < 40; ++wanted)
    for (std::int64_t unit = 1; unit < 20; ++unit) {
      const Near found = multiples_around(wanted, 30, unit);
      const Near searched = numbers_around(wanted, 30, [unit](std::int64_t n) { return n % unit == 0; });
      EXPECT_EQ(found.below, searched.below) << wanted << " " << unit;
      EXPECT_EQ(found.above, searched.above) << wanted << " " << unit;
    }
}

TEST(NumbersAround, AreTheNearestFirstAndAHandful) {
  const Near near = numbers_around(50, 100, [](std::int64_t n) { return n % 2 == 0; });
  ASSERT_FALSE(near.below.empty());
  EXPECT_EQ(near.below.front(), 50);
  EXPECT_EQ(near.above.front(), 52);
  EXPECT_TRUE(std::ranges::is_sorted(near.below, std::greater<>()));
  EXPECT_TRUE(std::ranges::is_sorted(near.above));
  EXPECT_LE(near.below.size() + near.above.size(), 20u);
}

}  // namespace
}  // namespace rehearse
