// Which sections and keys does a TOML file of torchtitan know?
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// InputError with every section and key that no release has, and the nearest that one has.
void require_torchtitan_keys(const Json& config, const std::string& file);

// The same with all degrees in [parallelism]: before v0.1.0 they stood in [training] and [experimental]
// (torchtitan/config_manager.py).
JsonReader with_one_parallelism(const JsonReader& config);

}  // namespace rehearse
