// How does the CPU compute on bf16 and fp16? In fp32, on copies.
#pragma once

#include "kernels/call.h"

namespace rehearse::kernels::cpu {

// Runs the fp32 kernel of a call. 16-bit operands are widened into separate memory first. Results are rounded
// to the nearest afterwards. The numbers match those of a device with 16-bit arithmetic; the times do not.
// DeviceError where operands differ in type and a GPU wants one type.
void run_widened(Call& call);

}  // namespace rehearse::kernels::cpu
