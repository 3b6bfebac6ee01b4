#include "result/error_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse {

namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

ErrorSummary summarise(const std::vector<double>& errors) {
  ErrorSummary summary;
  summary.n = errors.size();
  if (errors.empty()) return summary;
  const auto count = static_cast<double>(errors.size());
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  std::sort(sizes.begin(), sizes.end());
  summary.mean_abs = std::accumulate(sizes.begin(), sizes.end(), 0.0) / count;
  summary.bias = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  summary.median_abs = percentile(sizes, 0.5);
  summary.p90_abs = percentile(sizes, 0.9);
  summary.max_abs = sizes.back();
  return summary;
}

}  // namespace rehearse
