// Which products of an fp8 plan multiply fp8?
#pragma once

#include "plan/work.h"

namespace rehearse {

// Whether a kernel is a product of fp8 operands: of an fp8 plan's, all that read a quantised tensor. Routers,
// the output layer and attention multiply as in bf16: Megatron-LM's output layer is its own
// ColumnParallelLinear (models/gpt/gpt_model.py), no module of Transformer Engine, and PyTorch's float8 says
// how to leave it out (float8_experimental, README).
bool multiplies_fp8(const Block& block, const Kernel& kernel, Precision precision);

// What a product's operands are of under a plan of `precision`: the others of an fp8 plan's are bf16.
Precision precision_of(const Block& block, const Kernel& kernel, Precision precision);

}  // namespace rehearse
