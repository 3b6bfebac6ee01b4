#include "sweep/points_left.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Point> all_of(const PointsLeft& left) {
  std::vector<Point> points;
  while (const auto point = left.next()) points.push_back(*point);
  EXPECT_EQ(static_cast<Point>(points.size()), left.count);
  return points;
}

TEST(PointsLeft, AreThoseOfTheShardThatAreNotKnown) {
  EXPECT_THAT(all_of(points_left(5, {}, {})), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(all_of(points_left(5, {}, {0, 3, 4, 9})), ElementsAre(1, 2));
  EXPECT_THAT(all_of(points_left(7, {2, 3}, {0, 4})), ElementsAre(1));
  EXPECT_THAT(all_of(points_left(7, {1, 3}, {})), ElementsAre(0, 3, 6));
  EXPECT_THAT(all_of(points_left(2, {3, 3}, {})), IsEmpty());
  EXPECT_THAT(all_of(points_left(0, {}, {})), IsEmpty());
}

TEST(PointsLeft, OfShardsAreTogetherAll) {
  Point count = 0;
  for (int i = 1; i <= 7; ++i) count += points_left(100'000'000, {i, 7}, {}).count;
  EXPECT_EQ(count, 100'000'000);
}

}  // namespace
}  // namespace rehearse
