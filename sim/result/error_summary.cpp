#include "result/error_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/percentile.h"

namespace rehearse {

ErrorSummary summarise(const std::vector<double>& errors) {
  ErrorSummary summary;
  summary.n = errors.size();
  if (errors.empty()) return summary;
  const auto count = static_cast<double>(errors.size());
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  summary.mean_abs = std::accumulate(sizes.begin(), sizes.end(), 0.0) / count;
  summary.bias = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  std::ranges::sort(sizes);
  summary.median_abs = percentile(sizes, 0.5);
  summary.p90_abs = percentile(sizes, 0.9);
  summary.max_abs = sizes.back();
  return summary;
}

}  // namespace rehearse
