// Which value is a given percentile of a list?
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rehearse {

// Interpolated between the two nearest of `ascending` values, which must not be empty; share 0.5: the median.
inline double percentile(const std::vector<double>& ascending, double share) {
  const double at = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] + (at - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

}  // namespace rehearse
