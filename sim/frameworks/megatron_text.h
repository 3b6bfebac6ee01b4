// Which flags does a text of Megatron-LM hold, whatever its form?
#pragma once

#include <set>
#include <string>

#include "frameworks/script_flags.h"

namespace rehearse {

// Of a script or file of arguments (script_flags.h); of a model_config.yaml, whose keys are flags; or of the
// block of arguments that a training log prints, of which those count that are among `known`: the others are
// named in a note.
ScriptFlags megatron_text(const std::string& text, const std::string& file,
                          const std::set<std::string>& known);

}  // namespace rehearse
