// How is a protobuf message encoded? The subset of protobuf.dev/programming-guides/encoding that traces need.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

// Fields are in the order of writing; readers accept any order.
class ProtoWriter {
 public:
  void varint(int field, std::uint64_t value) {
    tag(field, 0);
    put(value);
  }
  void fixed64(int field, std::uint64_t value) {
    tag(field, 1);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>((value >> (8 * byte)) & 0xff);
  }
  void number(int field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void text(int field, std::string_view value) {
    tag(field, 2);
    put(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtoWriter& inner) { text(field, inner.bytes_); }

  // Framed as SerializeDelimitedToOstream() does in a file: each message after its length.
  std::string delimited() const {
    ProtoWriter length;
    length.put(bytes_.size());
    return length.bytes_ + bytes_;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(int field, int wire_type) {
    put(static_cast<std::uint64_t>(field) << 3 | static_cast<unsigned>(wire_type));
  }
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace rehearse
