// Which keys of a configuration were understood when it was read as another model type?
#pragma once

#include <string>

#include "model/family.h"

namespace rehearse {

// One sentence each: keys of `file` that were used, keys that nothing read, and keys that the family asks for
// and that the file lacks.
std::string keys_read_as(const JsonReader& file, const FamilyConfig& config);

}  // namespace rehearse
