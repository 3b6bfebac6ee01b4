// Which flags of Megatron-LM set the layers and the stage borders of a hybrid model?
#pragma once

#include <string>

#include "plan/plan.h"

namespace rehearse {

// Megatron-LM's --hybrid-layer-pattern. Stages of equal length with one pipeline rank each need no border.
std::string hybrid_layer_pattern(const Model& model, const Plan& plan);

}  // namespace rehearse
