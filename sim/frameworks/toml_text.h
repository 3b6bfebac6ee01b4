// Which JSON values does a TOML file hold?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// InputError, with line and column, for a text that is not TOML.
JsonReader read_toml(const std::string& text, const std::string& file);

}  // namespace rehearse
