// Which profile results from a recipe and the published tables that it names?
#pragma once

#include <filesystem>

#include "base/json_reader.h"

namespace rehearse {

// The profile's JSON (schema rehearse.profile/1). `data`: the folder with the recipe's files. A recipe that
// is "like" another finds it in ../recipes. InputError for a recipe or a table that breaks a rule.
Json import_profile(const JsonReader& recipe, const std::filesystem::path& data);

}  // namespace rehearse
