// Which profile do a recipe and the published tables that it names make?
#pragma once

#include <filesystem>

#include "base/json_reader.h"

namespace rehearse {

// The profile's JSON (schema rehearse.profile/1). `data`: the folder in which the recipe's files lie; a
// recipe that is "like" another finds it in ../recipes. InputError for a recipe or a table that breaks a
// rule.
Json import_profile(const JsonReader& recipe, const std::filesystem::path& data);

}  // namespace rehearse
