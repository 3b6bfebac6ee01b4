// How does the CPU compute on bf16 and fp16? In fp32, on copies.
#pragma once

#include "kernels/call.h"

namespace rehearse::kernels::cpu {

// Runs the fp32 kernel of a call. Operands of 16 bits are widened into memory of their own before, and what
// the call wrote of them is rounded to the nearest after it: the results of a device with such numbers, not
// its times. DeviceError where operands differ in type that a GPU wants alike.
void run_widened(Call& call);

}  // namespace rehearse::kernels::cpu
