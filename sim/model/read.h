// Which file describes the model that is trained? It is a Hugging Face config.json, or the name of one that
// ships with the program.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"

namespace rehearse {

// `name_or_path` is a preset (scenarios/models/NAME.json), the path of a config.json, or the path of its
// folder. InputError for a missing file, an unknown model_type (the nearest is named), or a missing or
// impossible field. `as`: the model type to read the file as, whatever type the file states. A warning then
// lists the keys that were used, ignored and missing.
Model read_model(const std::string& name_or_path, const std::string& as = "");

// Like read_model, for a config at `pointer` of another file, with a name of its own ("name"). Unknown keys
// of megatron_gpt are errors: all its keys are this program's.
Model read_inline_model(const Json& config, const std::string& file, const std::string& pointer);

// Keys of a configuration that its model type does not read, but for those without cost.
std::vector<std::string> unread_keys(const Json& config, const std::string& file);

std::vector<std::string> model_names();

// The file that read_model() reads for this name. InputError where there is none.
std::string model_file(const std::string& name_or_path);

}  // namespace rehearse
