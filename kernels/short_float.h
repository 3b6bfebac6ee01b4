// Which number do the two bytes of bf16 or fp16 represent, and which bytes are nearest to a number?
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/tensor.h"

namespace rehearse::kernels {

constexpr bool is_short(Type type) {
  return type == Type::bf16 || type == Type::fp16;
}

// Arithmetic is fp32. Conversion rounds to nearest, ties to even. Numbers too large become infinite; NaN
// stays NaN.
struct Bf16 {
  std::uint16_t bits = 0;

  Bf16() = default;
  explicit Bf16(float number) : bits(rounded(std::bit_cast<std::uint32_t>(number))) {}
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

 private:
  static std::uint16_t rounded(std::uint32_t wide) {
    constexpr std::uint32_t kSign = 0x80000000U, kInfinity = 0x7F800000U, kQuiet = 0x40U;
    if ((wide & ~kSign) > kInfinity) return static_cast<std::uint16_t>(wide >> 16 | kQuiet);
    return static_cast<std::uint16_t>((wide + 0x7FFFU + (wide >> 16 & 1U)) >> 16);
  }
};

struct Fp16 {
  std::uint16_t bits = 0;

  Fp16() = default;
  explicit Fp16(float number) : bits(rounded(std::bit_cast<std::uint32_t>(number))) {}

  operator float() const {
    constexpr std::uint32_t kExponent = 0x7C00U << 13;
    const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
    std::uint32_t wide = std::uint32_t{bits & 0x7FFFU} << 13;
    const std::uint32_t exponent = wide & kExponent;
    wide += (127U - 15U) << 23;
    if (exponent == kExponent) {
      wide += (128U - 16U) << 23;  // infinity or NaN
    } else if (exponent == 0) {    // below the least normal number, 2^-14
      wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(wide + (1U << 23)) - 0x1p-14F);
    }
    return std::bit_cast<float>(wide | sign);
  }

 private:
  static std::uint16_t rounded(std::uint32_t wide) {
    constexpr std::uint32_t kInfinity = 0x7F800000U, kTooLarge = 0x477FF000U;  // 65520, half way to 2^16
    constexpr std::uint32_t kMinNormal = 0x38800000U;                          // 2^-14
    const std::uint32_t sign = wide >> 16 & 0x8000U, size = wide & 0x7FFFFFFFU;
    if (size > kInfinity) return static_cast<std::uint16_t>(sign | 0x7E00U);
    if (size >= kTooLarge) return static_cast<std::uint16_t>(sign | 0x7C00U);
    if (size < kMinNormal) {  // with a half added, fp32's last place is 2^-24, as here
      const auto steps = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5F);
      return static_cast<std::uint16_t>(sign | (steps - std::bit_cast<std::uint32_t>(0.5F)));
    }
    const std::uint32_t nearest = size - ((127U - 15U) << 23) + 0xFFFU + (size >> 13 & 1U);
    return static_cast<std::uint16_t>(sign | nearest >> 13);
  }
};

// body(T{}) with the C++ type of a 16-bit type.
template <typename Body>
void by_short_type(Type type, const Body& body) {
  type == Type::bf16 ? body(Bf16{}) : body(Fp16{});
}

// The same, fp32 included.
template <typename Body>
void by_float_type(Type type, const Body& body) {
  is_short(type) ? by_short_type(type, body) : body(float{});
}

}  // namespace rehearse::kernels
