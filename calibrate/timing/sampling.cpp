#include "calibrate/timing/sampling.h"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

constexpr double kShortest = 2e-3;  // of a sample, so that the clock's resolution does not matter
constexpr std::size_t kMinSamples = 5;
constexpr int kMaxLaunches = 4096;
constexpr int kMaxSamples = 101;
constexpr int kMaxTries = 6;

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Timing summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = quantile(values, 0.5);
  return {median, (quantile(values, 0.75) - quantile(values, 0.25)) / median,
          static_cast<int>(values.size())};
}

std::vector<double> sample(const std::function<double(int launches)>& run, double budget_s,
                           const std::function<bool()>& stopped) {
  run(1);
  const double once = run(1);
  const double wanted = std::min(kShortest, budget_s / static_cast<double>(kMinSamples));
  const int launches = static_cast<int>(std::clamp(std::ceil(wanted / once), 1.0, double{kMaxLaunches}));
  if (launches > 1) run(launches);
  const std::size_t least = once > budget_s ? 3 : kMinSamples;
  std::vector<double> values;
  double passed = 0;
  while ((passed < budget_s || values.size() < least) && values.size() < kMaxSamples) {
    const double seconds = run(launches);
    passed += seconds;
    values.push_back(seconds / launches);
    if (stopped()) break;
  }
  return values;
}

std::vector<double> sample_beside(const std::function<double(int launches, double factor)>& run,
                                  double budget_s, const std::function<bool()>& stopped) {
  double factor = 2;
  bool covered = true;
  const auto covered_run = [&](int launches) {
    for (int tries = 0; covered && tries < kMaxTries; ++tries) {
      const double seconds = run(launches, factor);
      if (seconds >= 0) return seconds;
      factor *= 2;
    }
    covered = false;
    return budget_s;
  };
  const std::vector<double> values = sample(covered_run, budget_s, [&] { return !covered || stopped(); });
  return covered ? values : std::vector<double>();
}

}  // namespace rehearse
