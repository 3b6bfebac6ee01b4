// How often is a fault tried, and with which results? A few times in every test run, with a fixed seed. Under
// tools/harden as often as docs/reliability.md states; that prints the figures.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "sanitized.h"

namespace rehearse {

bool is_long();  // REHEARSE_HARDEN is set

inline int times(int otherwise, int in_long) {
  return is_long() ? in_long : otherwise;
}

// The same moments every time.
class Moments {
 public:
  double between(double least_s, double most_s) {
    return std::uniform_real_distribution<double>(least_s, most_s)(engine_);
  }

 private:
  std::mt19937 engine_{20261121};
};

void sleep_s(double seconds);

// Measures from where it is made.
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  double begin_s_;
};

// A line that tools/harden shows.
void figure(const std::string& line);

// "20 times, 0.01 / 0.02 / 0.31 s (least / median / most), bound 5 s", and fails the test where one is above.
void figure(const std::string& what, std::vector<double> seconds, double bound_s);

std::string contents(const std::string& path);

}  // namespace rehearse
