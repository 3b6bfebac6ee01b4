// Which experts does each token go to, and with what weight?
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

inline constexpr double kScoreBytes = 4;  // the router's scores and choices are fp32 and int32

// Of each of shape.rows tokens its experts.per_token choices, and the weight of each.
struct Choices {
  TensorId weights = -1;
  TensorId experts = -1;
};

// Scores of all experts by a GEMM, then the top-k. With Plan::fused_router one kernel chooses and another
// goes back; else Megatron core launches one for every operation of the choice, of the experts' capacity and
// of the auxiliary loss that balances them, whose counts are summed over the ranks of a sequence
// (transformer/moe/router.py and moe_utils.py, v0.9.0). The last kernel makes the host wait where it asks how
// many rows go where.
Choices route(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
              TensorId input);

}  // namespace rehearse
