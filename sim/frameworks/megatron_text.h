// Which options does a text of Megatron-LM hold, whatever its form?
#pragma once

#include <string>

#include "frameworks/imported.h"
#include "frameworks/script_flags.h"

namespace rehearse {

// Reads a script or file of arguments (script_flags.h), a model_config.yaml, or the block of arguments that a
// training log prints. Keys of a model_config.yaml are options.
ScriptFlags megatron_text(const std::string& text, const std::string& file, const ShellInputs& inputs);

// Whether a log prints its arguments.
bool holds_arguments(const std::string& text);

}  // namespace rehearse
