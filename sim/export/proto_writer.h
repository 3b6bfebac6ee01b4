// How is a protobuf message put into bytes? The wire format of protobuf.dev/programming-guides/encoding, as
// far as traces need it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

// Fields stand in the order in which they are written; whoever reads takes any.
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

  // As SerializeDelimitedToOstream() frames messages in a file: its length before each.
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
