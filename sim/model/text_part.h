// Where does a multimodal configuration describe the language model?
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// The configuration of the language model inside `config`, with what the wrapper says for all its parts; else
// `config` itself.
JsonReader text_part(const JsonReader& config);

}  // namespace rehearse
