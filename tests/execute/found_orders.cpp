#include "found_orders.h"

#include "plan/schedules.h"
#include "search/order/find_orders.h"

namespace rehearse {

std::vector<Schedule> orders_for_a_heavy_head(const Plan& plan) {
  OrderProblem problem;
  problem.ranks = plan.pp;
  problem.microbatches = static_cast<int>(plan.microbatches());
  const int stages = plan.stages();
  for (int s = 0; s < stages; ++s) {
    problem.rank_of.push_back(is_v_shaped(plan.schedule) && s >= plan.pp ? stages - 1 - s : s % plan.pp);
    StageCosts& stage = problem.stages.emplace_back();
    const Ticks ticks = s + 1 == stages ? 400 : 100;
    stage.forward = stage.weight = ticks;
    stage.input = ticks + 15;
    stage.backward = 2 * ticks;
    stage.saved = stage.kept = stage.forward_peak = stage.backward_peak = 1;
    stage.input_peak = stage.weight_peak = 1;
  }
  problem.step.assign(static_cast<std::size_t>(plan.pp), 0);
  problem.capacity.assign(static_cast<std::size_t>(plan.pp), plan.vpp * plan.pp + 2);
  std::vector<Schedule> orders;
  for (const FoundOrder& each : find_orders(problem, {}, {.seed = 3, .work = 200'000}))
    orders.push_back(schedule_of(each.orders, problem));
  return orders;
}

}  // namespace rehearse
