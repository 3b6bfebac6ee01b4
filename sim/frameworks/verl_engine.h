// Which engine do the defaults of a verl file name, where its actor has no strategy?
#pragma once

#include <string>

#include "base/json_reader.h"

namespace rehearse {

// The strategy that verl's own file of the actor has: "fsdp", "megatron", or the name of another engine. ""
// where the defaults name none.
std::string verl_engine(const Json& yaml);

}  // namespace rehearse
