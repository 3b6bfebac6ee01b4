// Which layers stand for those of any scenario?
#pragma once

#include "calibrate/timing/jobs.h"

namespace rehearse {

// The kernels of GPT and Llama layers of widths from 256 to `widest` and many numbers of tokens. In fp8 with
// both ways to scale, with experts, and with all that the grid in bf16 times: what such a plan multiplies in
// bf16 (output layers, routers) may have any width.
Jobs grid_jobs(Precision precision, std::int64_t widest);

}  // namespace rehearse
