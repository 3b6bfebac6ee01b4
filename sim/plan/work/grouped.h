// Which kernels do a rank's experts run on the rows that have arrived?
//
// Normally two GEMMs for each expert with an activation between them. Transformer Engine's operation fuser
// for MXFP8 on Blackwell has two GEMMs whose kernels also activate and quantize, and undo that in the
// backward pass (pull request 2769, ForwardGroupedMLP_CuTeGEMMSwiGLU_MXFP8 and
// BackwardGroupedMLP_CuTeGEMMDSwiGLU_MXFP8).
#pragma once

#include "plan/work/builder.h"

namespace rehearse {

struct ExpertRows {
  std::int64_t experts = 0;  // on this rank
  std::int64_t each = 0;     // rows of one
  std::int64_t ffn = 0;      // width on this rank
  TensorId rows = -1;
  TensorId weights = -1;  // of the rows in their tokens' sums, applied with the activation; -1: elsewhere
};

// Output of the experts for the rows.
TensorId run_experts(BlockBuilder& builder, const Model& model, const Plan& plan, const Shape& shape,
                     const ExpertRows& rows);

}  // namespace rehearse
