#include "sweep/grid.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "base/error.h"
#include "scratch.h"

namespace rehearse {
namespace {

TEST(Grid, TheLastFieldVariesFastest) {
  const Grid grid = small_grid();
  ASSERT_EQ(grid.size(), 6);
  EXPECT_EQ(grid.values_at(0), (std::vector<Json>{1, "gpipe"}));
  EXPECT_EQ(grid.values_at(1), (std::vector<Json>{1, "1f1b"}));
  EXPECT_EQ(grid.values_at(2), (std::vector<Json>{2, "gpipe"}));
  EXPECT_EQ(grid.values_at(5), (std::vector<Json>{4, "1f1b"}));
}

TEST(Grid, WithoutFieldsItIsOnePoint) {
  EXPECT_EQ(Grid{}.size(), 1);
  EXPECT_TRUE(Grid{}.values_at(0).empty());
}

TEST(Grid, PointsAreAllDifferent) {
  rc::check([] {
    Grid grid;
    for (int f = 0; f < *rc::gen::inRange(1, 4); ++f) {
      SweptField field{"f" + std::to_string(f), "/f" + std::to_string(f), {}};
      for (int v = 0; v < *rc::gen::inRange(1, 5); ++v) field.values.push_back(v);
      grid.fields.push_back(field);
    }
    std::set<std::vector<Json>> seen;
    for (Point point = 0; point < grid.size(); ++point) seen.insert(grid.values_at(point));
    RC_ASSERT(static_cast<Point>(seen.size()) == grid.size());
  });
}

TEST(Grid, MorePointsThanCanBeRunAreRefused) {
  Grid grid;
  for (int f = 0; f < 9; ++f) grid.fields.push_back({"f", "/f", std::vector<Json>(10, 0)});
  EXPECT_THROW(grid.size(), InputError);
}

TEST(Shards, TogetherTakeEveryPointOnce) {
  rc::check([] {
    const int count = *rc::gen::inRange(1, 20);
    for (Point point = 0; point < 50; ++point) {
      int takers = 0;
      for (int index = 1; index <= count; ++index) takers += Shard{index, count}.has(point);
      RC_ASSERT(takers == 1);
    }
  });
}

TEST(Shards, AreReadAsIOfN) {
  const Shard shard = parse_shard("3/8");
  EXPECT_EQ(shard.index, 3);
  EXPECT_EQ(shard.count, 8);
  for (const char* text : {"", "1", "/", "1/", "/2", "0/4", "5/4", "-1/4", "a/b", "1/2/3", "1 /2"})
    EXPECT_THROW(parse_shard(text), InputError) << text;
}

}  // namespace
}  // namespace rehearse
