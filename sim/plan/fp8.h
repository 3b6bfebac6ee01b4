// Which GEMMs of an fp8 or fp4 plan multiply quantized operands?
#pragma once

#include <vector>

#include "plan/work.h"

namespace rehearse {

// Whether a kernel is a product of fp8 or fp4 operands: all that read a quantized tensor. Routers,
// the output layer and attention multiply as in bf16: Megatron-LM's output layer is its own
// ColumnParallelLinear (models/gpt/gpt_model.py), no module of Transformer Engine, and PyTorch's float8 says
// how to leave it out (float8_experimental, README).
bool multiplies_quantized(const Block& block, const Kernel& kernel, Precision precision);

// What a GEMM's operands are of under a plan of `precision`: the others of a quantized plan's are bf16.
Precision precision_of(const Block& block, const Kernel& kernel, Precision precision);

// What casting weights into fp8 or fp4 reads and writes for each element of them, kernel by kernel and for
// each microbatch: before the GEMM of the forward pass, and for that of the input gradient, which wants
// them by columns.
//  Transformer Engine  by rows and columns at once (module/linear.py, v1.7: fp8_cast_transpose_fused), in
//                   every forward pass unless it is told which is a step's first: Megatron-LM does
//                   (core/extensions/transformer_engine.py, is_first_microbatch), so that it casts once a
//                   step; after a pass for the maximum with current scaling, and by rows alone where
//                   GEMMs take either layout. Weights that are held in fp8 are transposed as often, where
//                   two copies are held. MXFP8 quantizes as often, from weights gathered in 16 bits. NVFP4
//                   quantizes after a pass for the maximum, by rows and columns in blocks of 16 by 16
//  torchao          scaled by tensor: the maximum and a cast, and a cast by columns in the backward pass, for
//                   which torch.compile keeps the parameter rather than its fp8 copy (pytorch/pytorch pull
//                   request 148922) and the maximum (torch/_functorch/config.py, ban_recompute_reductions);
//                   by row: maximum and cast in both passes, of other rows; gathered in fp8: a transpose;
//                   MXFP8: a cast in each pass.
//                   Recompute by op keeps the maximum of a tensor (plan/work/rerun_by_op.cpp)
struct WeightCasts {
  std::vector<double> forward;
  std::vector<double> again;  // before the GEMMs of the forward pass that recompute runs again
  std::vector<double> backward;
};
WeightCasts weight_casts(const Plan& plan);

// Elements of the weights that quantized GEMMs of `kernels` read, for which they are cast.
double cast_elements(const Block& block, const std::vector<Kernel>& kernels, Precision precision);

}  // namespace rehearse
