// Which experts does each token go to, and with which weight?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

inline constexpr double kScoreBytes = 4;  // the router's scores and choices are fp32 and int32

// The experts.per_token choices of each of shape.rows tokens, and the weight of each choice.
struct Choices {
  TensorId weights = -1;
  TensorId experts = -1;
};

// Scores of all experts by a GEMM, then the top-k. With Plan::fused_router, one kernel chooses and another
// runs backward. Otherwise Megatron core launches a kernel for every operation of the choice, of the experts'
// capacity and of the auxiliary loss for balance. Counts of that loss are summed over the ranks of a sequence
// (transformer/moe/router.py and moe_utils.py, v0.9.0). The last kernel makes the host wait if it needs the
// number of rows for each destination.
Choices route(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
              TensorId input);

}  // namespace rehearse
