// A timing is a median with its quartiles, of enough samples that are long enough.
#include "calibrate/timing/sampling.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

bool never() {
  return false;
}

TEST(Summarise, TakesMedianAndQuartiles) {
  const Timing timing = summarise({5, 1, 3, 2, 4});
  EXPECT_EQ(timing.seconds, 3);
  EXPECT_DOUBLE_EQ(timing.spread, (4.0 - 2.0) / 3.0);
  EXPECT_EQ(timing.samples, 5);
}

TEST(Summarise, OneOutlierMovesNothing) {
  EXPECT_EQ(summarise({1, 1, 1, 1, 1, 1, 1, 1, 100}).seconds, 1);
  EXPECT_EQ(summarise({1, 1, 1, 1, 1, 1, 1, 1, 100}).spread, 0);
}

TEST(Sample, TimesShortLaunchesSeveralAtATime) {
  int most = 0;
  const Timing timing = summarise(sample(
      [&](int launches) {
        most = std::max(most, launches);
        return 1e-6 * launches;
      },
      0.1, never));
  EXPECT_GE(most, 1000);
  EXPECT_NEAR(timing.seconds, 1e-6, 1e-12);
  EXPECT_LT(timing.spread, 1e-9);
}

TEST(Sample, WarmsUpBeforeItBelievesAnything) {
  int calls = 0;
  const Timing timing =
      summarise(sample([&](int launches) { return calls++ == 0 ? 1000.0 : 0.05 * launches; }, 0.5, never));
  EXPECT_NEAR(timing.seconds, 0.05, 1e-9);
  EXPECT_GE(timing.samples, 5);
}

TEST(Sample, TakesThreeOfWhatIsLongerThanTheBudget) {
  EXPECT_EQ(sample([](int launches) { return 2.0 * launches; }, 0.5, never).size(), 3U);
}

TEST(Sample, EndsWhenItIsStopped) {
  EXPECT_EQ(sample([](int launches) { return 0.01 * launches; }, 100, [] { return true; }).size(), 1U);
}

TEST(Sample, IsTriedAgainUntilWhatGoesOnBesideItIsTheLast) {
  const std::vector<double> seconds = sample_beside(
      [](int launches, double factor) { return factor < 8 ? -1 : 0.05 * launches; }, 0.5, never);
  ASSERT_GE(seconds.size(), 5U);
  for (const double each : seconds) EXPECT_NEAR(each, 0.05, 1e-9);
}

TEST(Sample, IsMissingWhereWhatGoesOnBesideItAlwaysEndsFirst) {
  int calls = 0;
  double most = 0;
  const auto run = [&](int, double factor) {
    ++calls;
    most = std::max(most, factor);
    return -1.0;
  };
  EXPECT_TRUE(sample_beside(run, 0.5, never).empty());
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(most, 64);
}

}  // namespace
}  // namespace rehearse
