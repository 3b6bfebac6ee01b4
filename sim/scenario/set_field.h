// Which field of a scenario does "cluster.node.nics.count=4" mean, and how is it written?
#pragma once

#include <string>

#include "base/json_reader.h"
#include "scenario/flags.h"

namespace rehearse {

struct SetField {
  std::string path;     // "cluster.node.nics.count"
  std::string pointer;  // "/cluster_changes/node/nics/count"
  const Flag* flag;     // writes the same field; nullptr: none
  std::string text;     // right of the equals sign

  Json value(const std::string& one) const;  // InputError when it is not of the flag's kind
};

// InputError without a field, or with text that is not UTF-8.
SetField parse_set(const std::string& set);

// InputError, naming `flag`, where a scenario does not have that place.
void write_field(Json& scenario, const std::string& pointer, const Json& value, const std::string& flag);

// Rejects a field that a flag or another --set gives too.
[[noreturn]] void reject_twice(const std::string& flag, const std::string& field);

}  // namespace rehearse
