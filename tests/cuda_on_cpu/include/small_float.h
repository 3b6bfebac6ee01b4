// How does a GPU round to 16 and 8 bits? To the nearest, of two equally near to the even one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cuda_on_cpu {

// Too large a number becomes infinite, or, as where fp8 is converted, the largest there is.
template <typename Bits, int kExponentBits, int kFraction, Bits kLargest, Bits kTooLarge, Bits kNoNumber>
class SmallFloat {
 public:
  SmallFloat() = default;
  explicit SmallFloat(float number) : bits_(rounded(number)) {}
  explicit operator float() const {
    constexpr Bits kMagnitude = static_cast<Bits>((1U << (kExponentBits + kFraction)) - 1);
    const auto size = static_cast<Bits>(bits_ & kMagnitude);
    const float magnitude = size > kLargest ? (size == kTooLarge ? INFINITY : NAN) : widened(size);
    return bits_ > kMagnitude ? -magnitude : magnitude;
  }

 private:
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1, kDropped = 23 - kFraction;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << kFraction;

  static float widened(Bits size) {
    if (size < 1U << kFraction) return std::ldexp(static_cast<float>(size), 1 - kBias - kFraction);
    return std::bit_cast<float>((std::uint32_t{size} + kRebias) << kDropped);
  }

  static Bits rounded(float number) {
    const auto wide = std::bit_cast<std::uint32_t>(number);
    const auto sign = static_cast<Bits>(wide >> 31 << (kExponentBits + kFraction));
    std::uint32_t size = wide & 0x7fffffffU;
    if (size > 0x7f800000U) return kNoNumber;
    if (size < (static_cast<std::uint32_t>(128 - kBias) << 23)) {  // below the least normal number
      size = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(number), kBias - 1 + kFraction)));
    } else {
      size = ((size + (1U << (kDropped - 1)) - 1 + (size >> kDropped & 1)) >> kDropped) - kRebias;
    }
    return static_cast<Bits>(sign | (size > kLargest ? kTooLarge : size));
  }

  Bits bits_;  // a fresh one is no number in particular
};

}  // namespace cuda_on_cpu
