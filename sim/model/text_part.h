// Where does a multimodal configuration describe the language model?
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// The configuration of the language model inside `config`, with the keys that the wrapper states for all its
// parts. Where there is no such part: `config` itself.
JsonReader text_part(const JsonReader& config);

}  // namespace rehearse
