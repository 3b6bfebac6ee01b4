// Which engine do the defaults of a verl file name, where its actor has no strategy?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// The strategy of the actor's file that the defaults name: "fsdp", "megatron", or another engine. "" where
// they name no such file.
std::string verl_engine(const Json& yaml);

}  // namespace rehearse
