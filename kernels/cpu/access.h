// How does a CPU kernel access its elements? By type, and it refuses types that the CPU does not compute.
#pragma once

#include "kernels/device.h"

namespace rehearse::kernels::cpu {

inline void require(bool holds, const char* rule) {
  if (!holds) throw DeviceError(rule);
}

template <typename T>
constexpr Type type_of();
template <>
constexpr Type type_of<float>() {
  return Type::fp32;
}
template <>
constexpr Type type_of<std::int32_t>() {
  return Type::int32;
}
template <>
constexpr Type type_of<std::int64_t>() {
  return Type::int64;
}
template <>
constexpr Type type_of<std::uint8_t>() {
  return Type::uint8;
}

// The first element; nullptr for an absent operand.
template <typename T = float>
T* data(const Tensor& tensor) {
  require(!tensor.given() || tensor.type == type_of<T>(), "a CPU kernel was given a type that it cannot use");
  return static_cast<T*>(tensor.data);
}

template <typename T = float>
T* row(const Tensor& tensor, std::int64_t index) {
  return data<T>(tensor) + index * tensor.stride;
}

// Where rows of one sequence lie in a tensor: the first row, and the distance between places.
struct Places {
  std::int64_t first = 0, step = 1;
};
inline Places places_of(const Tokens& tokens, std::int64_t sequence) {
  if (tokens.position_major) return {sequence, tokens.sequences};
  return {sequence * tokens.length, 1};
}

inline std::int64_t place_of_row(const Tokens& tokens, std::int64_t index) {
  return tokens.position_major ? index / tokens.sequences : index % tokens.length;
}

inline std::int64_t position_of_place(const Tokens& tokens, std::int64_t place) {
  return tokens.positions.given() ? data<std::int32_t>(tokens.positions)[place] : place;
}

}  // namespace rehearse::kernels::cpu
