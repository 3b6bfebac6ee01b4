// Which file says what is trained: a Hugging Face config.json, or the name of one that ships with the
// program.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace rehearse {

// `name_or_path` is a preset (scenarios/models/NAME.json), the path of a config.json, or of the folder that
// holds one. InputError for a missing file, an unknown model_type (nearest named), a missing or impossible
// field.
Model read_model(const std::string& name_or_path);

std::vector<std::string> model_names();

// The file that read_model() reads for this name; InputError where there is none.
std::string model_file(const std::string& name_or_path);

}  // namespace rehearse
