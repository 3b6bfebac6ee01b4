// What do the experts that a router chooses make of a rank's rows?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

// What the experts read, and what the router scores: the same rows in most models.
struct RoutedRows {
  TensorId rows = -1;
  TensorId scored = -1;
};

// Summed for each token.
TensorId routed_experts(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                        const RoutedRows& rows);

}  // namespace rehearse
