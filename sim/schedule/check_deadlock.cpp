#include <fmt/core.h>

#include <algorithm>

#include "schedule/checks.h"
#include "schedule/tasks.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

constexpr TaskId kNoTask = static_cast<TaskId>(-1);

// The first op of an instance that can never begin, and the first such compute op; -1 when there is none.
struct Head {
  std::int32_t op = -1;
  std::int32_t compute = -1;
};

const Op& op_of(const Schedule& schedule, const Tasks& tasks, OpRef ref) {
  const int rank = tasks.instances[static_cast<std::size_t>(ref.instance)].pipeline_rank;
  return schedule.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(ref.op)];
}

std::vector<Head> find_heads(const Schedule& schedule, const Tasks& tasks, const std::vector<bool>& stuck) {
  std::vector<Head> heads(tasks.instances.size());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(tasks.instances[i].pipeline_rank)];
    for (std::size_t k = 0; k < ops.size() && heads[i].compute < 0; ++k) {
      if (!stuck[tasks.task(static_cast<int>(i), k)]) continue;
      if (heads[i].op < 0) heads[i].op = static_cast<std::int32_t>(k);
      if (ops[k].stream == Stream::compute) heads[i].compute = static_cast<std::int32_t>(k);
    }
  }
  return heads;
}

// By task: a stuck task that must end before it, or kNoTask.
std::vector<TaskId> find_blockers(const Tasks& tasks, const std::vector<bool>& stuck) {
  std::vector<TaskId> blocker(tasks.size(), kNoTask);
  for (TaskId task = 0; task < tasks.size(); ++task) {
    if (!stuck[task]) continue;
    for (const TaskId next : tasks.after(task)) blocker[next] = task;
  }
  return blocker;
}

std::string describe(const Schedule& schedule, const Tasks& tasks, const std::vector<bool>& stuck) {
  const std::vector<Head> heads = find_heads(schedule, tasks, stuck);
  const std::vector<TaskId> blockers = find_blockers(tasks, stuck);
  std::vector<std::string> stands;
  std::vector<std::pair<int, int>> marked;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const int rank = tasks.instances[i].pipeline_rank;
    if (heads[i].compute >= 0) marked.emplace_back(rank, heads[i].compute);
    if (heads[i].op < 0) continue;
    const TaskId task = tasks.task(static_cast<int>(i), static_cast<std::size_t>(heads[i].op));
    const OpRef blocker = tasks.leader[blockers[task]];
    stands.push_back(
        fmt::format("rank {} is at {}, which waits for {} on rank {}", rank,
                    to_string(op_of(schedule, tasks, {static_cast<std::int32_t>(i), heads[i].op})),
                    to_string(op_of(schedule, tasks, blocker)),
                    tasks.instances[static_cast<std::size_t>(blocker.instance)].pipeline_rank));
  }
  return join(stands, "; ") + "\n" + compute_table(schedule, marked);
}

// Returns whether the tasks deadlock.
bool check_queues(const Schedule& schedule, const Plan& plan, bool one_message_queue, const char* queues,
                  Faults& faults) {
  TaskOptions options;
  options.one_message_queue = one_message_queue;
  const Tasks tasks = derive_tasks(schedule, plan, options);
  const std::vector<TaskId> order = topological_order(tasks);
  if (order.size() == tasks.size()) return false;
  std::vector<bool> stuck(tasks.size(), true);
  for (const TaskId task : order) stuck[task] = false;
  faults.push_back(fmt::format("deadlock {}: {} of {} tasks can never begin; {}", queues,
                               tasks.size() - order.size(), tasks.size(), describe(schedule, tasks, stuck)));
  return true;
}

}  // namespace

void check_deadlock(const Schedule& schedule, const Plan& plan, Faults& faults) {
  if (check_queues(schedule, plan, false, "with one queue per stream", faults)) return;
  check_queues(schedule, plan, true,
               "when all messages of a rank share one queue, but not with one queue per stream", faults);
}

}  // namespace rehearse
