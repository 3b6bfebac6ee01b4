// What do options of MindSpeed and MindSpeed-LLM, Huawei's additions to Megatron-LM, state about the plan?
#pragma once

#include <string>
#include <vector>

#include "frameworks/megatron_flags.h"

namespace rehearse {

void add_mindspeed(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes);

}  // namespace rehearse
