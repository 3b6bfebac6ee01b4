// Which schedules do the property tests try, and how are they broken?
#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "schedule/passes.h"
#include "schedule/schedule.h"

namespace rehearse {

// A plan and the inputs of the passes: pp 1 to 16, vpp 1 to 4, one replica or two.
struct PipelineShape {
  Plan plan;
  GradientSync sync;

  Schedule complete() const { return complete_schedule(plan, sync); }
};
std::ostream& operator<<(std::ostream& out, const PipelineShape& shape);

Plan plan_of(ScheduleName name, int pp, int vpp, int microbatches, int dp = 1);
rc::Gen<PipelineShape> any_shape();

// The schedule with one rank's list replaced by the ops at `picked`, in that order; ops may be omitted or
// repeated. Waits follow their ops; those for ops not yet picked are dropped.
Schedule with_list(const Schedule& schedule, int rank, const std::vector<std::size_t>& picked);

// 0, 1, ..., size of the rank's list - 1
std::vector<std::size_t> all_ops(const Schedule& schedule, int rank);

// Position of the op of that name, e.g. "1SEND_B3".
std::size_t position(const Schedule& schedule, int rank, const std::string& name);

// Equal lists, waits included.
bool same(const Schedule& a, const Schedule& b);

}  // namespace rehearse
