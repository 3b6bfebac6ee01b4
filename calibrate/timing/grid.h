// Which layers represent those of any scenario?
#pragma once

#include "calibrate/timing/jobs.h"

namespace rehearse {

// The kernels of GPT and Llama layers of widths from 256 to `widest` and many numbers of tokens. fp8 includes
// both scaling methods, experts, and the whole bf16 grid, as the bf16 GEMMs of such a plan (output layers,
// routers) may have any width.
Jobs grid_jobs(Precision precision, std::int64_t widest);

}  // namespace rehearse
