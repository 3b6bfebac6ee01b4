// Which messages and collectives do the nodes of an exported Chakra trace describe?
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rehearse::properties {

enum class ChakraType { compute = 4, send = 5, receive = 6, collective = 7 };

struct ChakraNode {
  int type = 0;                                 // a ChakraType, or another
  std::map<std::string, std::int64_t> numbers;  // attributes by name: "comm_size", "comm_src", ...
  std::string group;                            // "pg_name"
};

// The nodes of a trace, as in mlcommons/chakra's et_def.proto: messages, each after its length; the first one
// is the head.
std::vector<ChakraNode> read_chakra(const std::string& trace);

}  // namespace rehearse::properties
