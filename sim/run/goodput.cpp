#include "run/goodput.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace rehearse {

double young_interval_s(const Failures& failures) {
  return std::sqrt(2 * failures.checkpoint_s * failures.mean_between_s);
}

double daly_interval_s(const Failures& failures) {
  const double x = failures.checkpoint_s / (2 * failures.mean_between_s);
  if (x >= 1) return failures.mean_between_s;
  return young_interval_s(failures) * (1 + std::sqrt(x) / 3 + x / 9) - failures.checkpoint_s;
}

double expected_goodput(const Failures& failures, double interval_s) {
  const double mean = failures.mean_between_s;
  return interval_s / (mean * std::exp(failures.restart_s / mean) *
                       std::expm1((interval_s + failures.checkpoint_s) / mean));
}

double simulated_goodput(const Failures& failures, double interval_s, double days_s, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto until_failure = [&] {
    const double uniform = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
    return -failures.mean_between_s * std::log(uniform);
  };
  const double segment = interval_s + failures.checkpoint_s;
  double now = 0, useful = 0, failure = until_failure();
  while (now < days_s) {
    // All whole segments up to the failure or the end. The segment under way is lost.
    const double stop = std::min(failure, days_s);
    useful += interval_s * std::floor((stop - now) / segment);
    now = stop;
    // A restart may fail too.
    while (now < days_s && failure <= now) {
      now = failure + failures.restart_s;
      failure += until_failure();
    }
  }
  return useful / days_s;
}

BestInterval best_simulated_interval(const Failures& failures, double days_s, std::uint64_t seed,
                                     int courses) {
  BestInterval best;
  const double middle = daly_interval_s(failures);
  for (double interval_s = middle / 4; interval_s <= middle * 4; interval_s *= 1.1) {
    double sum = 0;
    for (int course = 0; course < courses; ++course)
      sum += simulated_goodput(failures, interval_s, days_s, seed + static_cast<std::uint64_t>(course));
    if (sum / courses > best.goodput) best = {interval_s, sum / courses};
  }
  return best;
}

}  // namespace rehearse
