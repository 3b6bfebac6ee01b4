#include "cost/gemm_tiles.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rehearse {
namespace {

constexpr double kUnits = 100;                                // multiprocessors
const Roofline kRoof{1e14, 1e15, 2, 2};                       // memory that never holds up
constexpr double kTileSeconds = 2 * 128 * 128 * 1024 / 1e12;  // of a sum over 1,024

double seconds(double m, double n, double k, double batch = 1) {
  return tiled_bound(kRoof, kUnits, m, n, k, batch);
}

TEST(GemmTiles, OfAFullWaveTakeAsLongAsOne) {
  EXPECT_NEAR(seconds(10 * 128, 10 * 128, 1024), kTileSeconds, 1e-3 * kTileSeconds);
  EXPECT_NEAR(seconds(128, 128, 1024, 100), kTileSeconds, 1e-3 * kTileSeconds);
}

TEST(GemmTiles, CountWhole) {
  EXPECT_NEAR(seconds(1, 100 * 128, 1024), seconds(128, 100 * 128, 1024), 1e-3 * kTileSeconds);
}

// 110 tiles: between 1.1 waves and 2. Twenty sums over a tenth of k each would take 1.1, but write their
// parts.
TEST(GemmTiles, BeyondAWaveBeginAnother) {
  const Roofline slow_memory{1e14, 1e12, 2, 2};
  const double one = tiled_bound(slow_memory, kUnits, 128, 100 * 128, 1024, 1),
               more = tiled_bound(slow_memory, kUnits, 128, 110 * 128, 1024, 1);
  EXPECT_NEAR((more - one) / kTileSeconds, 0.55, 0.05);
}

TEST(GemmTiles, SplitTheSumWhereTheyAreFew) {
  EXPECT_LT(seconds(128, 10 * 128, 8192), 0.2 * 8 * kTileSeconds);
  EXPECT_GT(seconds(128, 10 * 128, 100), 0.09 * kTileSeconds);  // too short a sum to split
}

TEST(GemmTiles, WriteTheirResultsWhenTheirSumsAreDone) {
  const Roofline slow_memory{1e14, 1e12, 2, 2};
  const double both = tiled_bound(slow_memory, kUnits, 12800, 12800, 1024, 1);
  EXPECT_NEAR(both, 100 * kTileSeconds + 2.0 * 12800 * 12800 / 1e12, 1e-9 * both);
}

RC_GTEST_PROP(GemmTiles, NeverBeatTheRoofline, ()) {
  const auto side = [] { return static_cast<double>(*rc::gen::inRange(1, 100000)); };
  const double m = side(), n = side(), k = side(), batch = *rc::gen::inRange(1, 64);
  const Roofline roof{312e12, 2e12, 2, 2};
  RC_ASSERT(tiled_bound(roof, 108, m, n, k, batch) >= gemm_bound(roof, m, n, k, batch));
}

}  // namespace
}  // namespace rehearse
