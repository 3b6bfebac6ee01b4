// Which network does a TransformerConfig of OLMo-core describe?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

// A model that is written out (docs/models.md), by `model` as python_configuration() writes it. Null, with a
// note that says why, where the network has parts that the format has not. `notes`: its approximations.
Json olmo_core_network(const Json& model, std::int64_t positions, std::vector<std::string>& notes);

// "hsdp" of "DataParallelType.hsdp": OLMo-core's enumerations are words.
std::string olmo_core_word(const Json& value);

}  // namespace rehearse
