// Which kinds of blocks can a file of our own format name, and with which keys?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

struct BlockKind {
  std::string name;
  char letter = '*';  // a letter of Model::pattern; R: a recurrence
  bool mixes = true;  // it mixes tokens; else it follows a mixer
  std::vector<std::string> keys;
  Json implied;  // parts that such a block sets in the model
};

const BlockKind* block_kind(const std::string& name);  // nullptr: unknown name
std::vector<std::string> block_kind_names();

// Keys of the file outside its blocks.
const std::vector<std::string>& block_list_keys();

}  // namespace rehearse
