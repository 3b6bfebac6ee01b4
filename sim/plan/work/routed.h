// Which output do the experts that a router chooses compute for a rank's rows?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

// Rows that the experts read, and rows that the router scores: the same ones in most models.
struct RoutedRows {
  TensorId rows = -1;
  TensorId scored = -1;
};

// The output, summed for each token.
TensorId routed_experts(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                        const RoutedRows& rows);

}  // namespace rehearse
