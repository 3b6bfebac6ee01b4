// Which value does a measured curve have between its points?
#pragma once

#include <cmath>
#include <map>

namespace rehearse {

using Curve = std::map<double, double>;  // positive abscissa -> positive value; never empty when read

struct Reading {
  double value = 0;
  bool outside = false;  // more than a factor of two below the first or above the last point
};

// Straight lines in log-log; flat beyond the ends.
inline Reading read_at(const Curve& curve, double x) {
  const auto above = curve.lower_bound(x);
  if (above == curve.end()) return {curve.rbegin()->second, x > 2 * curve.rbegin()->first};
  if (above == curve.begin()) return {above->second, 2 * x < above->first};
  const auto below = std::prev(above);
  const double share = std::log(x / below->first) / std::log(above->first / below->first);
  return {below->second * std::pow(above->second / below->second, share), false};
}

}  // namespace rehearse
