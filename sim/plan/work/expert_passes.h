// Which passes over rows do experts of gpt-oss need outside of GEMMs? They clamp the activation's inputs.
// They add the last layer's bias to rows that were already weighted.
#pragma once

#include "plan/work/grouped.h"

namespace rehearse {

// Clamps gate and up projection, which are side by side in `rows`, and joins them again
// (fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl). The backward pass finds values within the
// limits by comparisons (PyTorch, clamp_backward).
TensorId clamp_gate_and_up(BlockBuilder& builder, TensorId rows);

// Adds each expert's bias of hidden elements to `rows`, the output of its last GEMM, scaled by each row's
// weight. Megatron core scales it row by row, adds it and joins the experts' rows again, expert by expert
// (transformer/moe/experts.py, _apply_bias). It uses the type of the weights: fp32 where a library sends rows
// once (fused_a2a.py casts them), else 16 bits, the routers' type (moe_router_dtype). Where the weights are
// applied elsewhere, the bias is added unscaled.
TensorId add_expert_bias(BlockBuilder& builder, const Plan& plan, const ExpertRows& of, TensorId rows);

}  // namespace rehearse
