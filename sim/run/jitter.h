// How long do ops and messages take in one iteration, when durations vary?
#pragma once

#include <vector>

#include "run/conditions.h"
#include "run/loads.h"

namespace rehearse {

// `loads` with random factors: one on every op's seconds, and one on every message's seconds and bytes.
// Factors are log-normal with mean 1 and the coefficient of variation of conditions.jitter: exp(s z - s^2 /
// 2), s^2 = ln(1 + cv^2), z standard normal. The same seed, iteration and task give the same draw on every
// machine.
Loads jittered(const Loads& loads, const Conditions& conditions, int iteration);

// Statistics of the step times of several iterations.
struct Spread {
  double mean_s = 0, deviation_s = 0;  // of the sample: over n - 1
  double least_s = 0, median_s = 0, p95_s = 0, most_s = 0;
};
Spread spread_of(std::vector<double> step_times_s);  // at least one

}  // namespace rehearse
