// Which file says what is trained: a Hugging Face config.json, or the name of one that ships with the
// program.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace rehearse {

// `name_or_path` is a preset (scenarios/models/NAME.json) or the path of a config.json.
// InputError for a missing file, an unknown model_type (nearest named), a missing or impossible field.
Model read_model(const std::string& name_or_path);

std::vector<std::string> model_names();

}  // namespace rehearse
