// In which order does each pipeline rank run its forwards and backwards? Compute ops only, with one generator
// a file.
#pragma once

#include "schedule/schedule.h"

namespace rehearse {

// The parts of a plan that a generator reads.
struct OrderShape {
  int pp = 1, microbatches = 1;
  int vpp = 1;
  int group = 0;  // microbatches that go through a chunk before the next one; 0: pp
  // Additional forward passes before the first backward. 1 where passes are paired, so that the two have
  // different microbatches (Megatron-LM, get_pp_rank_microbatches).
  int ahead = 0;
};

// The generator of each row of plan/schedules.def. Each generator's file describes its order, and the shapes
// that it rejects by InputError.
namespace orders {
#define REHEARSE_SCHEDULE(NAME, ...) Schedule NAME(const OrderShape& shape);
#include "plan/schedules.def"
}  // namespace orders

// The order that plan.schedule names, with passes paired where the plan pairs them.
Schedule make_order(const Plan& plan);

}  // namespace rehearse
