// What does a TOML file say, as JSON?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// InputError, with line and column, for what is no TOML.
JsonReader read_toml(const std::string& text, const std::string& file);

}  // namespace rehearse
