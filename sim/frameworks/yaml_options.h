// Which options of Megatron-LM does a YAML file name?
#pragma once

#include <string>

#include "frameworks/script_flags.h"

namespace rehearse {

// Whether a line of the text is "--option-name: value", as in model_config.yaml of Megatron-LM's functional
// tests.
bool has_yaml_options(const std::string& text);

// Those keys, wherever they stand: true is given, false and null are absent. Variables of values are those
// of `inputs`.
ScriptFlags yaml_options(const std::string& text, const std::string& file, const ShellInputs& inputs = {});

}  // namespace rehearse
