// What was approximated as a scenario was written?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// Adds the texts of "notes", which every report of the scenario repeats as warnings.
void read_notes(const JsonReader& scenario, std::vector<std::string>& notes);

}  // namespace rehearse
