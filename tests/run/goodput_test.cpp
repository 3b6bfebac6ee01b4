// The cost of failures, by formula and by simulation.
#include "run/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rehearse {
namespace {

constexpr double kDay = 86400;

TEST(Goodput, YoungsIntervalIsTheRootOfTwiceTheCheckpointTimesTheMeanBetweenFailures) {
  EXPECT_DOUBLE_EQ(young_interval_s({8 * 3600, 60, 0}), std::sqrt(2 * 60 * 8 * 3600.0));
}

TEST(Goodput, DalysIntervalTendsToYoungsForCheapCheckpoints) {
  const Failures cheap{1e6, 1e-3, 0};
  EXPECT_NEAR(daly_interval_s(cheap) / young_interval_s(cheap), 1, 1e-4);
}

TEST(Goodput, NoIntervalNearDalysIsExpectedToDoBetter) {
  const Failures failures{4 * 3600, 120, 600};
  const double daly = daly_interval_s(failures);
  for (double factor = 0.2; factor < 5; factor *= 1.07)
    EXPECT_LE(expected_goodput(failures, factor * daly), expected_goodput(failures, daly) * (1 + 1e-5));
}

TEST(Goodput, WithoutFailuresOnlyCheckpointsCost) {
  EXPECT_NEAR(expected_goodput({1e12, 60, 600}, 540), 0.9, 1e-6);
  EXPECT_NEAR(simulated_goodput({1e12, 60, 600}, 540, 30 * kDay, 1), 0.9, 1e-3);
}

TEST(Goodput, ManyRandomCoursesMeetTheExpectation) {
  const Failures failures{3 * 3600, 60, 600};
  for (const double interval : {300.0, 1200.0, 5000.0}) {
    double mean = 0;
    for (std::uint64_t course = 0; course < 100; ++course)
      mean += simulated_goodput(failures, interval, 100 * kDay, course) / 100;
    EXPECT_NEAR(mean, expected_goodput(failures, interval), 0.003) << interval;
  }
}

TEST(Goodput, TheSimulatedOptimumLiesNearDalys) {
  const Failures failures{3 * 3600, 60, 600};
  const BestInterval best = best_simulated_interval(failures, 100 * kDay, 7, 50);
  EXPECT_NEAR(best.interval_s / daly_interval_s(failures), 1, 0.35);
  EXPECT_NEAR(best.goodput, expected_goodput(failures, daly_interval_s(failures)), 0.005);
}

TEST(Goodput, RestartsThatOutlastTheTimeBetweenFailuresLeaveLittle) {
  EXPECT_LT(simulated_goodput({600, 10, 3600}, 100, 30 * kDay, 3), 0.01);
}

}  // namespace
}  // namespace rehearse
