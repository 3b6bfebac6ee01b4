// Which flags of Megatron-LM say the layers of a hybrid model, and where its stages end?
#pragma once

#include <string>

#include "plan/plan.h"

namespace rehearse {

// Megatron-LM's --hybrid-layer-pattern. Stages of one pipeline rank each and of equal length need no border.
std::string hybrid_layer_pattern(const Model& model, const Plan& plan);

}  // namespace rehearse
