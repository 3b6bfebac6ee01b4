// How small and how large may a number of an input be? One entry for each kind of quantity. The bounds are
// far beyond any hardware, and no quotient or product of them leaves the range of a double.
#pragma once

#include "base/quantity.h"

namespace rehearse {

// Both ends are legal. In SI units.
struct Bounds {
  Dimension dimension = Dimension::one;
  double least = 0, most = 0;
  bool or_zero = false;  // 0 is legal too: it means "none" or "no limit"

  bool hold(double value) const { return (value >= least && value <= most) || (or_zero && value == 0); }
};

namespace physical {

inline constexpr Bounds kBandwidth{Dimension::bytes_per_second, 1e3, 1e15};  // links, NICs, memory
inline constexpr Bounds kLatency{Dimension::seconds, 0, 1};                  // links, launches
inline constexpr Bounds kFlops{Dimension::flops, 1e6, 1e18};                 // peaks and measured rates
inline constexpr Bounds kMemory{Dimension::bytes, 1, 1e15};                  // of a GPU
inline constexpr Bounds kBytes{Dimension::bytes, 1, 1e15};                   // of a message or an operand
inline constexpr Bounds kMessage{Dimension::bytes, 1, 1e15, true};  // a row of nccl-tests may send none
inline constexpr Bounds kMessageTime{Dimension::microseconds, 1e-3, 1e12};   // as nccl-tests print it
inline constexpr Bounds kDuration{Dimension::seconds, 1e-12, 1e6};           // of a kernel or a message
inline constexpr Bounds kEvents{Dimension::per_second, 1, 1e18};             // parameters stepped
inline constexpr Bounds kMessageRate{Dimension::per_second, 1, 1e18, true};  // of a NIC; 0: none on record
inline constexpr Bounds kClock{Dimension::hertz, 0, 1e15};
inline constexpr Bounds kSpread{Dimension::one, 0, 1e6};             // deviation of samples over their median
inline constexpr Bounds kStepTime{Dimension::seconds, 1e-12, 1e30};  // of a whole training step

}  // namespace physical

inline constexpr double kMaxClipGrad = 1e9;  // largest norm that gradients are clipped to

// "from 1 kB/s to 1 PB/s", "0, or from 1 to 1e+18 1/s".
std::string to_string(const Bounds& bounds);

// The bound nearest to a value outside, with its unit: "1 kB/s".
std::string nearest_bound(const Bounds& bounds, double value);

}  // namespace rehearse
