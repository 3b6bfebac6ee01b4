// How does a kernel see a tensor? As device memory, a type, and rows of columns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::kernels {

enum class Type : std::uint8_t { fp32, bf16, fp16, fp8_e4m3, fp8_e5m2, int32, int64, uint8 };

constexpr std::size_t bytes_of(Type type) {
  switch (type) {
    case Type::int64:
      return 8;
    case Type::fp32:
    case Type::int32:
      return 4;
    case Type::bf16:
    case Type::fp16:
      return 2;
    default:
      return 1;
  }
}

// rows x columns elements, with rows `stride` elements apart: a slice of columns of a larger matrix is a
// Tensor too. A vector is one row. A Tensor without data stands for an absent operand.
struct Tensor {
  void* data = nullptr;
  Type type = Type::fp32;
  std::int64_t rows = 0, columns = 0, stride = 0;

  Tensor() = default;
  Tensor(void* memory, Type element, std::int64_t height, std::int64_t width)
      : data(memory), type(element), rows(height), columns(width), stride(width) {}

  bool given() const { return data != nullptr; }
  std::int64_t elements() const { return rows * columns; }
  bool contiguous() const { return stride == columns || rows <= 1; }

  Tensor slice(std::int64_t first_column, std::int64_t width) const {
    Tensor part = *this;
    part.data = static_cast<std::byte*>(data) + static_cast<std::size_t>(first_column) * bytes_of(type);
    part.columns = width;
    return part;
  }
};

// Which token does a row hold? Rows run over sequences and positions, in either order. `positions` (int32,
// one a sequence place; default 0, 1, 2, ...) gives the position of a place in the whole sequence, which
// context parallelism splits over ranks.
struct Tokens {
  std::int64_t sequences = 1, length = 0;
  bool position_major = false;  // row = place * sequences + sequence; else sequence * length + place
  Tensor positions;

  std::int64_t rows() const { return sequences * length; }
};

}  // namespace rehearse::kernels
