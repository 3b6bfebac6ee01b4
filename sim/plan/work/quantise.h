// Which kernels turn the operands of a linear layer into fp8 or fp4, and which tensors do its GEMMs read?
//
// Hopper multiplies fp8 only by rows. The forward GEMM or the input gradient reads a tensor by rows, and the
// weight gradient needs it by columns. Either one kernel reads the tensor and writes both (Transformer Engine
// 1.x, pytorch/module/linear.py, cast_transpose), or a quantized tensor is transposed. Transformer Engine
// scales by earlier steps' maxima. PyTorch (torchao/float8, float8_linear.py) first passes over the tensor
// for its maximum.
//
// torchao scaled by tensor keeps the fp8 input, because torch.compile does (pytorch/ao issue 1850), and
// transposes it in the backward pass. Scaled by row, it quantizes inputs and gradients once more by columns,
// and sends nothing in fp8 (torchtitan, float8.md). Its backward GEMMs, which sum exactly, are cuBLAS's of
// unscaled operands, scaled afterwards (float8_ops.py, addmm_float8_unwrapped).
//
// In fp4 (NVFP4), Transformer Engine passes over the tensor for the maxima of its rows, and of its columns
// after the Hadamard transform. Then one kernel writes both (pytorch/csrc/quantizer.cpp, v2.13,
// NVFP4Quantizer::quantize_impl), for tensors of any origin. Weights: plan/fp8.h.
#pragma once

#include <string>
#include <vector>

#include "plan/work/builder.h"
#include "plan/work/shape.h"

namespace rehearse {

// The operand of one GEMM, and the tensor kept for the weight gradient.
struct Quantized {
  TensorId rows = -1;
  TensorId kept = -1;
  bool kept_by_columns = false;
};

// Without quantized GEMMs both are `input`. An input of a byte an element or less was already quantized by
// the kernel that wrote it.
Quantized quantize_input(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                         TensorId input);

// A rank's rows of `input`, for the other ranks to gather. One GEMM reads the gathered rows. The other GEMM
// reads the same tensor or, with block scaling, a second one that is gathered later.
Quantized quantize_shard(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                         TensorId input);

// The weight gradient's operand, computed in the backward pass from the kept tensor.
TensorId input_by_columns(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                          const Quantized& input);

// Gradients that are side by side, for the input gradient and for the weight gradient.
struct QuantizedGradient {
  std::vector<TensorId> rows, columns;
};
QuantizedGradient quantize_gradient(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                                    const std::vector<TensorId>& gradients);

// If a backward GEMM's result is scaled afterwards: the pass over it. A result that is added to others is
// scaled in that sum.
void scale_input_gradient(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                          TensorId gradient);
void scale_weight_gradient(BlockBuilder& builder, const Shape& shape, const std::string& linear,
                           TensorId weight);

// quantize_shard() for a gradient (Transformer Engine; torchao/float8, float8_tensor_parallel.py,
// NoopFwToFloat8BwDynamic).
Quantized quantize_gradient_shard(BlockBuilder& builder, const Shape& shape, const std::string& name,
                                  TensorId gradient);

}  // namespace rehearse
