// Which kernels turn the operands of a linear layer into fp8 or fp4, and which tensors do its GEMMs read?
//
// Hopper multiplies fp8 rows by rows only. What the forward GEMM or the input gradient reads by rows the
// weight gradient needs by columns: one kernel reads the tensor and writes it both ways (Transformer
// Engine 1.x, pytorch/module/linear.py, cast_transpose), or what came quantized is transposed. Transformer
// Engine scales by earlier steps' maxima; PyTorch (torchao/float8, float8_linear.py) passes over the tensor
// for its maximum first. Scaled by tensor it keeps the fp8 input, as torch.compile finds (pytorch/ao issue
// 1850), and transposes it in the backward pass; scaled by row, inputs and gradients are quantized once more
// by columns, and nothing travels in fp8 (torchtitan, float8.md); its backward GEMMs, which add up
// exactly, are cuBLAS's of unscaled operands, scaled afterwards (float8_ops.py, addmm_float8_unwrapped).
// In fp4 (NVFP4) Transformer Engine passes over the tensor for the maxima of its rows and of its columns
// after the Hadamard transform, then writes both in one kernel (pytorch/csrc/quantizer.cpp, v2.13,
// NVFP4Quantizer::quantize_impl), whatever kernel made it. Weights: plan/fp8.h.
#pragma once

#include <string>
#include <vector>

#include "plan/work/builder.h"
#include "plan/work/shape.h"

namespace rehearse {

// What one GEMM reads, and what stays for the weight gradient.
struct Quantized {
  TensorId rows = -1;
  TensorId kept = -1;
  bool kept_by_columns = false;
};

// Without quantized GEMMs both are `input`. An input of a byte an element or less was quantized by the
// kernel that made it.
Quantized quantize_input(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                         TensorId input);

// A rank's rows of `input`, for the other ranks to gather: what one GEMM reads, and for the other the same
// or, of blocks, what they gather in its turn.
Quantized quantize_shard(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                         TensorId input);

// The weight gradient's operand, made in the backward pass of what was kept.
TensorId input_by_columns(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                          const Quantized& input);

// Gradients that lie side by side, for the input gradient and for the weight gradient.
struct QuantizedGradient {
  std::vector<TensorId> rows, columns;
};
QuantizedGradient quantize_gradient(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                                    const std::vector<TensorId>& gradients);

// Where a backward GEMM's result is scaled afterwards, the pass over it; else none. One that is added to
// others is scaled as they are added up.
void scale_input_gradient(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                          TensorId gradient);
void scale_weight_gradient(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                           TensorId weight);

// The same of a gradient (Transformer Engine; torchao/float8, float8_tensor_parallel.py,
// NoopFwToFloat8BwDynamic).
Quantized quantize_gradient_shard(BlockBuilder& builder, const Shape& shape, const std::string& name,
                                  TensorId gradient);

}  // namespace rehearse
