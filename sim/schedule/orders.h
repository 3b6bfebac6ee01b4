// In which order does each pipeline rank run its forwards and backwards? Compute ops only; one generator a
// file.
#pragma once

#include "schedule/schedule.h"

namespace rehearse {

// All forwards, then all backwards in the same microbatch order (Huang et al. 2019).
Schedule gpipe(int pp, int microbatches);

// pp - rank - 1 warm-up forwards, then one forward one backward, then cool-down (Narayanan et al. 2019).
Schedule one_f_one_b(int pp, int microbatches);

// Interleaved 1F1B in Megatron-LM's order: microbatch groups of pp, chunk after chunk (Narayanan et al. 2021,
// section 2.2). Requires microbatches % pp == 0 when vpp > 1.
Schedule interleaved_1f1b(int pp, int vpp, int microbatches);

// The order that plan.schedule names.
Schedule make_order(const Plan& plan);

}  // namespace rehearse
