#include "sweep/grid.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "base/error.h"
#include "small_grid.h"

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

}  // namespace
}  // namespace rehearse
