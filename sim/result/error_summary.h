// How far are predictions from measurements, over many of them?
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse {

// Of relative errors predicted / measured - 1. Percentiles interpolate between neighbours; all are 0 for
// none.
struct ErrorSummary {
  std::size_t n = 0;
  double mean_abs = 0, median_abs = 0, p90_abs = 0, max_abs = 0;
  double bias = 0;  // mean, signs kept
};

ErrorSummary summarise(const std::vector<double>& errors);

}  // namespace rehearse
