// Which random numbers does the search of orders draw? The same on every machine, of integers alone.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "search/order/problem.h"

namespace rehearse {

// SplitMix64 (Steele et al. 2014).
class OrderRandom {
 public:
  explicit OrderRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // 0 to count - 1; count >= 1.
  int below(int count) { return static_cast<int>((next() >> 32) * static_cast<std::uint64_t>(count) >> 32); }
  bool one_in(int count) { return below(count) == 0; }
  // 1 or more, at most `most`; each next number is half as likely.
  int few(int most) { return 1 + std::min(std::countl_zero(next() | 1), most - 1); }

  // Exponential with this mean. Its logarithm is interpolated linearly between powers of two.
  Ticks exponential(Ticks mean) {
    const std::uint64_t bits = next() | 1;
    const int zeros = std::countl_zero(bits);
    const auto fraction = static_cast<std::int64_t>((bits << zeros << 1) >> 48);  // of 2^16
    const std::int64_t power = (std::int64_t{zeros} + 1) * 65536 - fraction;
    constexpr std::int64_t kLn2 = 45426;  // of 2^16
    const std::int64_t factor = power * kLn2 >> 16;
    return mean / 65536 * factor + (mean % 65536 * factor >> 16);
  }

 private:
  std::uint64_t state_;
};

}  // namespace rehearse
