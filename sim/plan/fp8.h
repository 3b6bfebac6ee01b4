// Which GEMMs of an fp8 or fp4 plan multiply quantized operands?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

// Whether a kernel is a GEMM of fp8 or fp4 operands: every GEMM that reads a quantized tensor is. Routers,
// the output layer and attention multiply as in bf16. Megatron-LM's output layer is its own
// ColumnParallelLinear (models/gpt/gpt_model.py), no module of Transformer Engine. PyTorch's float8 documents
// how to exclude it (float8_experimental, README).
bool multiplies_quantized(const Block& block, const Kernel& kernel, Precision precision);

// Precision of a GEMM's operands under a plan of `precision`; other GEMMs of a quantized plan are in bf16.
Precision precision_of(const Block& block, const Kernel& kernel, Precision precision);

// Bytes that weight casts into fp8 or fp4 read and write for each weight element, kernel by kernel and for
// each microbatch. Casts come before the GEMM of the forward pass, and before that of the input gradient,
// which needs weights by columns.
// - Transformer Engine: by rows and columns at once (module/linear.py, v1.7: fp8_cast_transpose_fused), in
//   every forward pass unless it knows the first one of a step. Megatron-LM tells it
//   (core/extensions/transformer_engine.py, is_first_microbatch), so it casts once a step. With current
//   scaling, a pass for the maximum comes before. Where GEMMs take either layout, it casts by rows only.
//   Weights held in fp8 are transposed equally often, where two copies are held. MXFP8 quantizes equally
//   often, from weights gathered in 16 bits. NVFP4 quantizes after a pass for the maximum, by rows and
//   columns in blocks of 16 by 16.
// - torchao, scaled by tensor: the maximum and a cast, and a cast by columns in the backward pass. For that,
//   torch.compile keeps the parameter rather than its fp8 copy (pytorch/pytorch pull request 148922) and the
//   maximum (torch/_functorch/config.py, ban_recompute_reductions).
// - torchao, by row: maximum and cast in both passes, of different rows. Gathered in fp8: a transpose. MXFP8:
//   a cast in each pass.
// - Recompute by op keeps the maximum of a tensor (plan/work/rerun_by_op.cpp).
struct WeightCasts {
  std::vector<double> forward;
  std::vector<double> again;  // before the GEMMs of the recomputed forward pass
  std::vector<double> backward;
};
WeightCasts weight_casts(const Plan& plan);

// Elements of the weights that quantized GEMMs of `kernels` read after a cast.
double cast_elements(const Block& block, const std::vector<Kernel>& kernels, Precision precision);

}  // namespace rehearse
