// Which ops begin and end together, and which of these tasks must end before which others begin? The tasks
// are derived once from the lists. The simulator, the deadlock check and the longest path use the same tasks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/ranks.h"
#include "schedule/schedule.h"

namespace rehearse {

using TaskId = std::uint32_t;

// Decides how many ranks are simulated. When folded, one instance stands for all tensor- and context-parallel
// peers, and for the data-parallel ones that TaskOptions::replicas does not name.
enum class Fold : std::uint8_t { replicas, none };

// An op of an instance: instances[i] runs schedule.ranks[i.pipeline_rank].
struct OpRef {
  std::int32_t instance = 0;
  std::int32_t op = 0;
};

struct Instance {
  int rank = 0;  // global rank (the first of its peers when folded)
  int pipeline_rank = 0;
};

struct Tasks {
  std::vector<Instance> instances;
  std::vector<std::uint32_t>
      first_op;                      // by instance: task_of index of its op 0; one more entry than instances
  std::vector<TaskId> task_of;       // by op of instance: its task
  std::vector<OpRef> leader;         // by task: the op that names it (sender, first member of a collective)
  std::vector<OpRef> peer;           // by task: the receiver of a message; equals leader elsewhere
  std::vector<std::uint32_t> waits;  // by task: edges into it
  std::vector<std::uint32_t>
      first_next;            // by task: where its part of `next` begins; one more entry than tasks
  std::vector<TaskId> next;  // tasks that wait for it

  std::size_t size() const { return leader.size(); }
  std::span<const TaskId> after(TaskId task) const {
    return std::span(next).subspan(first_next[task], first_next[task + 1] - first_next[task]);
  }
  TaskId task(int instance, std::size_t op) const {
    return task_of[first_op[static_cast<std::size_t>(instance)] + op];
  }
};

struct TaskOptions {
  Fold fold = Fold::replicas;
  bool one_queue = false;          // all ops of an instance run in issue order, as on one hardware queue
  bool one_message_queue = false;  // all messages of an instance run in issue order
  // Folded: the data-parallel coordinates that are simulated, each by its own instances; ascending.
  std::vector<int> replicas = {0};
};

// InputError naming the op when a message has no partner on the other side.
Tasks derive_tasks(const Schedule& schedule, const Plan& plan, const TaskOptions& options = {});

// Tasks in an order in which every edge points forward. Shorter than tasks.size() on a deadlock: the missing
// tasks can never begin.
std::vector<TaskId> topological_order(const Tasks& tasks);

}  // namespace rehearse
