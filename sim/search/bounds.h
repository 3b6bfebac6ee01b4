// Which step time can a plan not beat, known before its schedule is made?
#pragma once

#include "cost/stage_times.h"
#include "plan/plan.h"

namespace rehearse {

// A lower bound in seconds on any iteration of the plan, for every order of its ops. It is the larger of two
// sums, maximized over pipeline ranks r. m is the number of microbatches, s0 the first stage of r:
//   busy:  F of the stages before s0 + m (F + B) of r's stages + r's optimizer step
//   drain: F of the stages before s0 + m (F + I) of r's stages + I of the stages before s0
//          + W of stage 0 + the optimizer step of stage 0's rank     (I + W = B where B is not split)
// The first holds because r's compute stream begins with a forward that waits for the stages before it, and
// runs one op at a time. The second holds because that microbatch still goes back to stage 0 after r's last
// input gradient. Messages, gradient sync and delays beside collectives only add to it. The bound is lowered
// by a billionth, for rounding. Requires a plan whose ranks take the optimizer step together (sync_step), and
// times without jitter.
double least_step_time(const Plan& plan, const OpTimes& times);

}  // namespace rehearse
