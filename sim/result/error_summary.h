// How far are many predictions from measurements?
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse {

// Summary of relative errors predicted / measured - 1. Percentiles interpolate between neighbours. Without
// errors all fields are 0.
struct ErrorSummary {
  std::size_t n = 0;
  double mean_abs = 0, median_abs = 0, p90_abs = 0, max_abs = 0;
  double bias = 0;  // mean, signs kept
};

ErrorSummary summarise(const std::vector<double>& errors);

}  // namespace rehearse
