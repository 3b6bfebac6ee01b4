// Which network does a TransformerConfig of OLMo-core describe?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// The written-out model (docs/models.md) of `model`, which python_configuration() made. Null, with a note
// that gives the reason, where the format lacks parts of the network. `notes`: approximations.
Json olmo_core_network(const Json& model, std::int64_t positions, std::vector<std::string>& notes);

// "hsdp" of "DataParallelType.hsdp": OLMo-core's enumerations are words.
std::string olmo_core_word(const Json& value);

}  // namespace rehearse
