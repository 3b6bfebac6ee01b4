// Where is the data that ships with the program: topologies, model presets, profiles, scenarios?
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rehearse {

// $REHEARSE_DATA, else ../share/rehearse beside the program, else the source tree it was built from.
std::filesystem::path data_directory();

// Stems of the *.json files of a folder below data_directory(), sorted; empty when the folder is missing.
std::vector<std::string> data_names(const std::string& folder);

// A name resolves to data_directory()/folder/name.json. Text with '/' or ending in ".json" is a path, and "-"
// a stream. InputError{what, nearest name} when it cannot be read.
std::string find_data_file(const std::string& what, const std::string& folder,
                           const std::string& name_or_path);

}  // namespace rehearse
