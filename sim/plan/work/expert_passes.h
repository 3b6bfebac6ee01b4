// What do experts of gpt-oss do in passes over their rows, where no GEMM does it: hold what is activated
// within limits, and add the bias of the last layer to rows that were weighted before it.
#pragma once

#include "plan/work/grouped.h"

namespace rehearse {

// `rows`, gate and up projection side by side, each clamped and joined anew (fusions/fused_bias_geglu.py,
// weighted_bias_quick_geglu_impl); the way back finds which were within by comparisons (PyTorch,
// clamp_backward).
TensorId clamp_gate_and_up(BlockBuilder& builder, TensorId rows);

// One bias of hidden elements an expert, added to `rows`, which its last GEMM made, as often as each row
// counts. Megatron core scales it row by row, adds and joins the experts' rows anew, expert by expert
// (transformer/moe/experts.py, _apply_bias), in the type of the weights: fp32 where a library sends rows once
// (fused_a2a.py casts them), else 16 bits, as routers leave them (moe_router_dtype). Where the weights are
// applied elsewhere the bias is added as it is.
TensorId add_expert_bias(BlockBuilder& builder, const Plan& plan, const ExpertRows& of, TensorId rows);

}  // namespace rehearse
