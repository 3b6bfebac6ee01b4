// Which parts of a model can no flag of Megatron-LM choose?
#pragma once

#include <vector>

#include "model/model.h"

namespace rehearse {

std::vector<const char*> without_flag(const Model& model);

}  // namespace rehearse
