// Which value do so many of a list's not exceed?
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rehearse {

// On the line between the two nearest of `values`, which are not empty; share 0.5: the median.
inline double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace rehearse
