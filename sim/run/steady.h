// After how many microbatches does a pipeline repeat itself?
//
// In the middle of a step, each op begins and ends the same time after its twin, one round of microbatches
// earlier. Where these times are equal on all ranks, the whole state of the step repeats, and so does
// everything that follows. Where some ranks are faster than others, no op may wait for a slower one: it will
// begin to wait some day.
#pragma once

#include <cstdint>
#include <optional>

#include "result/timeline.h"
#include "schedule/tasks.h"

namespace rehearse {

struct SteadyRound {
  std::int64_t microbatches = 0;
  bool is_uniform = true;  // a round takes the same time on all ranks
};

// The smallest round of a multiple of `unit` microbatches, up to an eighth of the step's. None where the
// middle of the timeline does not repeat.
std::optional<SteadyRound> steady_round(const Schedule& schedule, const Tasks& tasks,
                                        const Timeline& timeline, std::int64_t unit);

// Whether it repeats after this round.
std::optional<SteadyRound> steady_after(const Schedule& schedule, const Tasks& tasks,
                                        const Timeline& timeline, std::int64_t round);

}  // namespace rehearse
