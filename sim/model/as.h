// Which keys of a configuration were understood when it was read as another model type?
#pragma once

#include <string>
#include <vector>

#include "model/family.h"

namespace rehearse {

// Keys of `file` that nothing read, but for those without cost.
std::vector<std::string> unread_keys(const JsonReader& file, const FamilyConfig& config);

// One sentence each about the keys of `file`: those that were used, those that nothing read, and those that
// the family needs and the file lacks.
std::string keys_read_as(const JsonReader& file, const FamilyConfig& config);

}  // namespace rehearse
