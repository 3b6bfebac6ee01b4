// Which values may a flag of Megatron-LM have?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// Of a flag with a closed list of values; else empty.
std::vector<std::string> legal_values(const std::string& flag);

// Whether it stands alone.
bool is_switch(const std::string& flag);

}  // namespace rehearse
