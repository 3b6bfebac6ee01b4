#include "chakra_nodes.h"

#include <cstdint>
#include <string_view>

namespace rehearse::properties {

namespace {

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::string_view take_block(std::string_view& bytes) {
  const std::size_t size = take_varint(bytes);
  const std::string_view block = bytes.substr(0, size);
  bytes.remove_prefix(block.size());
  return block;
}

// Calls on_number(field, value) and on_block(field, bytes) for each field; only these two wire types occur.
template <typename OnNumber, typename OnBlock>
void each_field(std::string_view message, OnNumber on_number, OnBlock on_block) {
  while (!message.empty()) {
    const std::uint64_t tag = take_varint(message);
    if ((tag & 7U) == 0)
      on_number(tag >> 3, take_varint(message));
    else
      on_block(tag >> 3, take_block(message));
  }
}

constexpr std::uint64_t kType = 3, kAttribute = 10, kAttributeName = 1;

void read_attribute(std::string_view message, ChakraNode& node) {
  std::string name, text;
  std::int64_t number = 0;
  each_field(
      message, [&](std::uint64_t, std::uint64_t value) { number = static_cast<std::int64_t>(value); },
      [&](std::uint64_t field, std::string_view block) { (field == kAttributeName ? name : text) = block; });
  if (name == "pg_name")
    node.group = text;
  else
    node.numbers[name] = number;
}

}  // namespace

std::vector<ChakraNode> read_chakra(const std::string& trace) {
  std::vector<ChakraNode> nodes;
  std::string_view rest = trace;
  take_block(rest);
  while (!rest.empty()) {
    ChakraNode& node = nodes.emplace_back();
    each_field(
        take_block(rest),
        [&](std::uint64_t field, std::uint64_t value) {
          if (field == kType) node.type = static_cast<int>(value);
        },
        [&](std::uint64_t field, std::string_view block) {
          if (field == kAttribute) read_attribute(block, node);
        });
  }
  return nodes;
}

}  // namespace rehearse::properties
