// Which file says what is trained: a Hugging Face config.json, or the name of one that ships with the
// program.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"

namespace rehearse {

// `name_or_path` is a preset (scenarios/models/NAME.json), the path of a config.json, or of the folder that
// holds one. InputError for a missing file, an unknown model_type (nearest named), a missing or impossible
// field.
// `as`: the model type that it is read as, whatever type it says that it is; a warning lists the keys that
// were used, ignored and missing.
Model read_model(const std::string& name_or_path, const std::string& as = "");

// The same of a config that stands at `pointer` of another file, with a name of its own ("name"). Of
// megatron_gpt, whose keys all are this program's, unknown ones are errors.
Model read_inline_model(const Json& config, const std::string& file, const std::string& pointer);

std::vector<std::string> model_names();

// The file that read_model() reads for this name; InputError where there is none.
std::string model_file(const std::string& name_or_path);

}  // namespace rehearse
