// Which sections and keys does a TOML file of torchtitan know?
#pragma once

#include "base/json_reader.h"
#include "frameworks/imported.h"

namespace rehearse {

// InputError with every key that no release has, and the nearest known key: torchtitan refuses them too.
// Sections unlike any known one are an experiment's own.
void require_torchtitan_keys(const Json& config, const std::string& file);

// Each key as an option, used or free of cost, and a note for each section that is an experiment's own.
void list_torchtitan_options(const Json& config, Imported& imported);

// A note for each unsupported key that is set and changes the cost.
void note_ignored_of_torchtitan(const Json& config, Imported& imported);

// The configuration with all degrees in [parallelism]: before v0.1.0 they stood in [training] and
// [experimental] (torchtitan/config_manager.py).
JsonReader with_one_parallelism(const JsonReader& config);

// Whether the section has the key in any release, and whether it costs nothing.
bool is_torchtitan_key(const std::string& section, const std::string& key);
bool is_torchtitan_free(const std::string& section, const std::string& key);

}  // namespace rehearse
