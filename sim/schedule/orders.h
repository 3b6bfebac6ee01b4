// In which order does each pipeline rank run its forwards and backwards? Compute ops only; one generator a
// file.
#pragma once

#include "schedule/schedule.h"

namespace rehearse {

// All forwards, then all backwards in the same microbatch order (Huang et al. 2019).
Schedule gpipe(int pp, int microbatches);

// pp - rank - 1 warm-up forwards, then one forward one backward, then cool-down (Narayanan et al. 2019).
// `ahead` forwards more before the first backward, so that neighbours differ in their microbatch: 1 where
// passes are paired, as Megatron-LM does (get_pp_rank_microbatches).
Schedule one_f_one_b(int pp, int microbatches, int ahead = 0);

// Interleaved 1F1B in Megatron-LM's order: `group` microbatches (0: pp) through a chunk, then through the
// next (Narayanan et al. 2021, section 2.2). When vpp > 1, InputError unless pp <= group <= microbatches and
// the last group is full or at least pp.
Schedule interleaved_1f1b(int pp, int vpp, int microbatches, int group = 0, int ahead = 0);

// Zero bubble (Qi et al. 2023) with I and W in place of B. H1 holds the activations of 1F1B; its bubble is
// (p-1)(F + I - W). H2 holds 2p - 1 microbatches; its bubble is (p-1)(F + I - 2W) from a rank's first op to
// its last.
Schedule zb_h1(int pp, int microbatches);
Schedule zb_h2(int pp, int microbatches);

// V-shaped: stage s and stage 2 pp - 1 - s on rank s. ZB-V has no bubble when F, I and W are equal, at the
// activations of 1F1B; V-Half and V-Min (Qi et al. 2024) hold about a half and a third of them.
Schedule zb_v(int pp, int microbatches);
Schedule v_half(int pp, int microbatches);
Schedule v_min(int pp, int microbatches);

// DualPipe's order in the V shape. InputError for fewer than 2 pp microbatches.
Schedule dualpipe_v(int pp, int microbatches);

// The order that plan.schedule names, its passes paired where the plan pairs them.
Schedule make_order(const Plan& plan);

}  // namespace rehearse
