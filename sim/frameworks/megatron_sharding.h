// Over which ranks do options of Megatron-LM shard parameters, gradients and optimizer state?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "frameworks/megatron_flags.h"

namespace rehearse {

// `scenario` may hold the number of GPUs.
void add_sharding(const MegatronFlags& flags, const Json& scenario, Json& plan,
                  std::vector<std::string>& notes);

}  // namespace rehearse
