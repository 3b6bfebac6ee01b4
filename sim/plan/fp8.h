// Which products of an fp8 plan multiply fp8?
#pragma once

#include "plan/work.h"

namespace rehearse {

// Whether a kernel is a product of fp8 operands: of an fp8 plan's, all that read a quantised tensor. Routers,
// the output layer and attention multiply as in bf16: Transformer Engine's modules are Megatron-LM's linear
// layers, of which the output layer is none, and torchao's recipes leave it out.
bool multiplies_fp8(const Block& block, const Kernel& kernel, Precision precision);

}  // namespace rehearse
