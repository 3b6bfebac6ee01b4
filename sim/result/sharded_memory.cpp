#include <algorithm>

#include "plan/sharding.h"
#include "plan/units.h"
#include "result/memory.h"

namespace rehearse {

StateBytes held_state(double parameters, const Plan& plan) {
  const StateBytes whole = state_bytes(plan);
  const Sharding shards = sharding(plan);
  StateBytes held{parameters * whole.parameter / shards.parameters,
                  parameters * whole.gradient / shards.gradients,
                  parameters * whole.optimizer / shards.optimizer};
  if (plan.offload != Offload::optimizer) return held;
  held.optimizer = 0;
  // Reduced shards leave for the host at once; gradients that add up over microbatches stay whole until then.
  if (plan.zero >= 2 && reduces_each_microbatch(plan)) held.gradient = 0;
  return held;
}

double sharding_buffers(int pipeline_rank, const Plan& plan, const Work& work) {
  if (plan.zero < 2) return 0;
  double buffers = 0;
  for (int stage = pipeline_rank; stage < static_cast<int>(work.parts.size()); stage += plan.pp) {
    std::vector<double> units = unit_parameters(work, stage);
    std::sort(units.rbegin(), units.rend());
    double gathered = 0, largest = plan.bucket_bytes;
    if (plan.zero == 3) {
      const std::size_t whole =
          std::min<std::size_t>(units.size(), static_cast<std::size_t>(plan.prefetch) + 1);
      for (std::size_t u = 0; u < whole && plan.reshard_after_forward; ++u) gathered += units[u];
      largest = units.empty() ? 0 : units.front() * gradient_wire_bytes(plan);
    }
    const double gradients = reduces_each_microbatch(plan)
                                 ? std::min(largest, work.parameters(stage) * gradient_wire_bytes(plan))
                                 : 0;
    buffers = std::max(buffers, gathered * parameter_bytes(plan) + gradients);
  }
  return buffers;
}

}  // namespace rehearse
