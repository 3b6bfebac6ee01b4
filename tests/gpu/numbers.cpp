#include "gpu/numbers.h"

#include <cmath>
#include <cstring>

namespace rehearse::kernels {

namespace {

// Bits of the exponent and of the fraction.
struct Format {
  int exponent, fraction;
  int bias() const { return (1 << (exponent - 1)) - 1; }
};

Format format_of(Type type) {
  if (type == Type::bf16) return {8, 7};
  if (type == Type::fp16) return {5, 10};
  if (type == Type::fp8_e4m3) return {4, 3};
  return {5, 2};
}

bool is_short_float(Type type) {
  return type == Type::bf16 || type == Type::fp16 || type == Type::fp8_e4m3 || type == Type::fp8_e5m2;
}

std::uint32_t to_bits(float value, Format format) {
  const std::uint32_t sign = std::signbit(value) ? 1U << (format.exponent + format.fraction) : 0U;
  const double size = std::abs(double{value});
  if (size == 0) return sign;
  if (std::isinf(size)) return sign | (((1U << format.exponent) - 1) << format.fraction);
  int exponent = std::max(std::ilogb(size), 1 - format.bias());
  auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, format.fraction - exponent)));
  const std::uint32_t one = 1U << format.fraction;
  if (steps == 2 * one) {
    steps = one;
    ++exponent;
  }
  if (steps < one) return sign | steps;  // subnormal
  return sign | static_cast<std::uint32_t>(exponent + format.bias()) << format.fraction | (steps - one);
}

float from_bits(std::uint32_t bits, Format format) {
  const std::uint32_t one = 1U << format.fraction;
  const double sign = (bits >> (format.exponent + format.fraction) & 1) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>(bits >> format.fraction & ((1U << format.exponent) - 1));
  const std::uint32_t steps = exponent == 0 ? bits & (one - 1) : one + (bits & (one - 1));
  const int power = std::max(exponent, 1) - format.bias() - format.fraction;
  return static_cast<float>(sign * std::ldexp(double{static_cast<float>(steps)}, power));
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void encode_one(std::byte* at, float value, Type type) {
  switch (type) {
    case Type::fp32:
      return store(at, value);
    case Type::int32:
      return store(at, static_cast<std::int32_t>(value));
    case Type::int64:
      return store(at, static_cast<std::int64_t>(value));
    case Type::uint8:
      return store(at, static_cast<std::uint8_t>(value));
    default:
      break;
  }
  const std::uint32_t bits = to_bits(value, format_of(type));
  if (bytes_of(type) == 2) return store(at, static_cast<std::uint16_t>(bits));
  store(at, static_cast<std::uint8_t>(bits));
}

float decode_one(const std::byte* at, Type type) {
  switch (type) {
    case Type::fp32:
      return load<float>(at);
    case Type::int32:
      return static_cast<float>(load<std::int32_t>(at));
    case Type::int64:
      return static_cast<float>(load<std::int64_t>(at));
    case Type::uint8:
      return static_cast<float>(load<std::uint8_t>(at));
    default:
      break;
  }
  const std::uint32_t bits = bytes_of(type) == 2 ? load<std::uint16_t>(at) : load<std::uint8_t>(at);
  return from_bits(bits, format_of(type));
}

}  // namespace

float rounded(float value, Type type) {
  return is_short_float(type) ? from_bits(to_bits(value, format_of(type)), format_of(type)) : value;
}

std::vector<std::byte> encode(const std::vector<float>& values, Type type) {
  std::vector<std::byte> bytes(values.size() * bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) encode_one(&bytes[i * bytes_of(type)], values[i], type);
  return bytes;
}

std::vector<float> decode(const std::vector<std::byte>& bytes, Type type) {
  std::vector<float> values(bytes.size() / bytes_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode_one(&bytes[i * bytes_of(type)], type);
  return values;
}

double spacing(Type type) {
  if (type == Type::fp32) return std::ldexp(1.0, -23);
  return is_short_float(type) ? std::ldexp(1.0, -format_of(type).fraction) : 0;
}

}  // namespace rehearse::kernels
