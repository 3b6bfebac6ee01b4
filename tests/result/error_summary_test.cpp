#include "result/error_summary.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(ErrorSummary, IsOfSizesInWhateverOrderTheErrorsCome) {
  const ErrorSummary summary = summarise({0.5, -0.1, 0.3, -0.2, 0.4});
  EXPECT_EQ(summary.n, 5U);
  EXPECT_DOUBLE_EQ(summary.mean_abs, 0.3);
  EXPECT_DOUBLE_EQ(summary.bias, 0.18);
  EXPECT_DOUBLE_EQ(summary.median_abs, 0.3);
  EXPECT_DOUBLE_EQ(summary.p90_abs, 0.46);  // at 3.6: between 0.4 and 0.5
  EXPECT_DOUBLE_EQ(summary.max_abs, 0.5);
}

TEST(ErrorSummary, OfNothingIsZeros) {
  EXPECT_EQ(summarise({}).n, 0U);
  EXPECT_EQ(summarise({}).median_abs, 0);
}

}  // namespace
}  // namespace rehearse
