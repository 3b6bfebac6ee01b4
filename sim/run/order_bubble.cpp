#include "run/order_bubble.h"

#include "run/reference.h"
#include "schedule/passes.h"

namespace rehearse {

namespace {

double nominal_s(OpKind kind) {
  if (!is_compute(kind)) return 0;
  return kind == OpKind::backward ? 2 : 1;
}

}  // namespace

double bubble_of_order(const Schedule& order, const Plan& plan) {
  Plan free = plan;
  free.overlap_p2p = true;
  const Schedule schedule = with_transfers(order, free);
  const Tasks tasks = derive_tasks(schedule, plan);
  std::vector<double> seconds;
  double busy = 0;
  for (const OpRef& leader : tasks.leader) {
    const Instance& instance = tasks.instances[static_cast<std::size_t>(leader.instance)];
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(instance.pipeline_rank)];
    seconds.push_back(nominal_s(ops[static_cast<std::size_t>(leader.op)].kind));
    busy += seconds.back();
  }
  std::vector<double> begins;
  const double end = longest_path(tasks, topological_order(tasks), seconds, begins);
  return end > 0 ? 1 - busy / (end * static_cast<double>(tasks.instances.size())) : 0;
}

}  // namespace rehearse
