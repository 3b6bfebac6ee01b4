#include "run/reference.h"

#include <algorithm>
#include <stdexcept>

namespace rehearse {

double longest_path(const Tasks& tasks, std::span<const TaskId> order, std::span<const double> seconds,
                    std::vector<double>& begins) {
  begins.assign(tasks.size(), 0.0);
  double latest = 0;
  for (const TaskId task : order) {
    const double end = begins[task] + seconds[task];
    latest = std::max(latest, end);
    for (const TaskId next : tasks.after(task)) begins[next] = std::max(begins[next], end);
  }
  return latest;
}

Timeline reference(const Schedule& schedule, const Tasks& tasks, const Loads& loads) {
  const std::vector<TaskId> order = topological_order(tasks);
  if (order.size() != tasks.size())
    throw std::logic_error("the schedule deadlocks; check it before running it");
  std::vector<double> seconds(tasks.size());
  for (TaskId task = 0; task < tasks.size(); ++task) seconds[task] = loads.alone_s(task);
  std::vector<double> begins;
  longest_path(tasks, order, seconds, begins);
  for (TaskId task = 0; task < tasks.size(); ++task) seconds[task] += begins[task];
  return spread(schedule, tasks, loads, begins, seconds);
}

namespace {

TimeParts contended(const ContendedOp& op, double lost_s) {
  std::array<double, kInnerGroups> seconds{};
  double all = 0;
  for (std::size_t group = 0; group < kInnerGroups; ++group)
    all += seconds[group] = op.round[group].exposed_s + op.round[group].beside_s;
  const auto of = [&](CommGroup group) { return lost_s * seconds[static_cast<std::size_t>(group)] / all; };
  TimeParts parts;
  parts.tp = of(CommGroup::tensor) + of(CommGroup::expert_tensor);
  parts.cp = of(CommGroup::context);
  parts.ep = of(CommGroup::expert);
  return parts;
}

}  // namespace

Timeline spread(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                std::span<const double> begins, std::span<const double> ends) {
  Timeline timeline;
  timeline.ranks.reserve(tasks.instances.size());
  for (std::size_t i = 0; i < tasks.instances.size(); ++i) {
    const Instance& instance = tasks.instances[i];
    const std::size_t ops = schedule.ranks[static_cast<std::size_t>(instance.pipeline_rank)].size();
    TimelineRank rank{instance, std::vector<Span>(ops)};
    for (std::size_t op = 0; op < ops; ++op) {
      const TaskId task = tasks.task(static_cast<int>(i), op);
      rank.spans[op] = {begins[task], ends[task]};
      const ContendedOp* const inner = loads.inside.of(task);
      const double slowed_s = loads.slowed_s.empty() ? 0 : loads.slowed_s[task];
      if (inner == nullptr && slowed_s == 0) continue;
      if (rank.lost.empty()) rank.lost.resize(ops);
      if (inner != nullptr) {
        const double lost_s = rank.spans[op].seconds() - loads.fixed_s[task] - inner->priced_s;
        rank.lost[op] = contended(*inner, std::max(0.0, lost_s));
      }
      rank.lost[op].compute = slowed_s;
    }
    timeline.ranks.push_back(std::move(rank));
  }
  return timeline;
}

}  // namespace rehearse
