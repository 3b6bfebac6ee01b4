// In which order does each pipeline rank run its forwards and backwards? Compute ops only; one generator a
// file.
#pragma once

#include "schedule/schedule.h"

namespace rehearse {

// What a generator may ask of a plan.
struct OrderShape {
  int pp = 1, microbatches = 1;
  int vpp = 1;
  int group = 0;  // microbatches that go through a chunk before the next one; 0: pp
  // Forward passes more before the first backward: 1 where passes are paired, so that the two have different
  // microbatches (Megatron-LM, get_pp_rank_microbatches).
  int ahead = 0;
};

// The generator of each row of plan/schedules.def. Each file says what its order is, and what it rejects by
// InputError.
namespace orders {
#define REHEARSE_SCHEDULE(NAME, ...) Schedule NAME(const OrderShape& shape);
#include "plan/schedules.def"
}  // namespace orders

// The order that plan.schedule names, its passes paired where the plan pairs them.
Schedule make_order(const Plan& plan);

}  // namespace rehearse
