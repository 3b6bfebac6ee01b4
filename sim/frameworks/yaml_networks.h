// Which network does YAML with Megatron-LM's names describe, where it is no decoder of attention layers?
#pragma once

#include <string>

#include "frameworks/yaml_text.h"

namespace rehearse {

// InputError for a network of encoders, images or recurrent layers that options do not describe.
void refuse_other_networks(const Json& yaml, const std::string& file);

// The letters of NeMo's Mamba, one for each layer; "" where the file has another network or its own pattern.
std::string mamba_pattern(const Json& yaml, const std::string& file);

}  // namespace rehearse
