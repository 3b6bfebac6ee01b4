#include "schedule/tasks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "plan/comm_group.h"

namespace rehearse {

namespace {

constexpr std::int32_t kNone = -1;

// Finds the receive that belongs to a send, for all pipeline ranks at once. There is one cell for each
// direction, stage and microbatch.
class Receives {
 public:
  explicit Receives(const Schedule& schedule)
      : microbatches_(schedule.microbatches),
        stages_(schedule.stages),
        cells_(
            2 * static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(schedule.microbatches),
            {kNone, kNone}) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const RankOps& list = schedule.ranks[rank];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Op& op = list[i];
        if (!is_receive(op.kind)) continue;
        OpRef& found = cell(op.kind == OpKind::recv_forward, op.stage, op);
        if (found.op != kNone) throw unmatched(op, "is received twice");
        found = {static_cast<std::int32_t>(rank), static_cast<std::int32_t>(i)};
      }
    }
  }

  // {pipeline rank, op index} of the receive of `send`; each can be taken once.
  OpRef take(const Op& send) {
    const bool forward = send.kind == OpKind::send_forward;
    OpRef& found = cell(forward, forward ? send.stage + 1 : send.stage - 1, send);
    if (found.op == kNone) throw unmatched(send, "has no receive on the other side");
    return std::exchange(found, {kNone, kNone});
  }

  void require_all_taken(const Schedule& schedule) const {
    for (const OpRef& cell : cells_) {
      if (cell.op == kNone) continue;
      const RankOps& list = schedule.ranks[static_cast<std::size_t>(cell.instance)];
      throw unmatched(list[static_cast<std::size_t>(cell.op)], "has no send on the other side");
    }
  }

 private:
  static InputError unmatched(const Op& op, const std::string& what) {
    return InputError({"", "schedule", fmt::format("{} {}", to_string(op), what), "", ""});
  }

  OpRef& cell(bool forward, int stage, const Op& op) {
    if (stage < 0 || stage >= stages_ || op.microbatch < 0 || op.microbatch >= microbatches_) {
      throw unmatched(op, fmt::format("lies outside {} stages x {} microbatches", stages_, microbatches_));
    }
    const std::size_t row = static_cast<std::size_t>(stage) * 2 + (forward ? 1 : 0);
    return cells_[row * static_cast<std::size_t>(microbatches_) + static_cast<std::size_t>(op.microbatch)];
  }

  int microbatches_;
  int stages_;
  std::vector<OpRef> cells_;
};

class TaskBuilder {
 public:
  TaskBuilder(const Schedule& schedule, const Plan& plan, const TaskOptions& options)
      : schedule_(schedule), grid_(plan), shard_(group_size(CommGroup::shards, plan)), options_(options) {}

  Tasks run() {
    place_instances();
    join_ops();
    connect();
    return std::move(tasks_);
  }

 private:
  void place_instances() {
    if (options_.fold == Fold::replicas) {
      for (const int replica : options_.replicas) {
        for (int rank = 0; rank < schedule_.pp; ++rank)
          tasks_.instances.push_back({grid_.rank({0, 0, 0, replica, rank}), rank});
      }
      find_walked_leaders();
    } else {
      for (int rank = 0; rank < grid_.size(); ++rank) {
        tasks_.instances.push_back({rank, grid_.coordinates(rank)[static_cast<std::size_t>(Axis::pp)]});
      }
    }
    tasks_.first_op.push_back(0);
    for (const Instance& instance : tasks_.instances) {
      tasks_.first_op.push_back(tasks_.first_op.back() +
                                static_cast<std::uint32_t>(list_of(instance).size()));
    }
    tasks_.task_of.assign(tasks_.first_op.back(), 0);
  }

  // By walked replica: the first that shares shards with it, and the first that holds the same shards.
  void find_walked_leaders() {
    std::map<int, int> first_of_group, first_at_position;
    for (int i = 0; i < static_cast<int>(options_.replicas.size()); ++i) {
      const int replica = options_.replicas[static_cast<std::size_t>(i)];
      const int position = grid_.replica_position(grid_.rank({0, 0, 0, replica, 0}));
      group_leader_.push_back(first_of_group.try_emplace(position / shard_, i).first->second);
      position_leader_.push_back(first_at_position.try_emplace(position % shard_, i).first->second);
    }
  }

  const RankOps& list_of(const Instance& instance) const {
    return schedule_.ranks[static_cast<std::size_t>(instance.pipeline_rank)];
  }

  // The instance at the same coordinates as `instance`, except for one axis. A folded instance stands for its
  // peers along every axis but pp and dp.
  int beside(int instance, Axis axis, int coordinate) const {
    if (options_.fold == Fold::replicas)
      return axis == Axis::pp ? instance / schedule_.pp * schedule_.pp + coordinate : instance;
    Coordinates coordinates = grid_.coordinates(instance);
    coordinates[static_cast<std::size_t>(axis)] = coordinate;
    return grid_.rank(coordinates);
  }

  // The first of the replicas that share shards with an instance, or the first that holds its shard.
  int first_of_shards(int instance) const {
    if (options_.fold == Fold::replicas) return in_walked_replica(instance, group_leader_);
    return grid_.replica_at(instance, grid_.replica_position(instance) / shard_ * shard_);
  }
  int first_with_shard(int instance) const {
    if (options_.fold == Fold::replicas) return in_walked_replica(instance, position_leader_);
    return grid_.replica_at(instance, grid_.replica_position(instance) % shard_);
  }

  // The first of the instances whose ops begin and end together with this one's.
  int leader_of(int instance, const Op& op) const {
    switch (op.kind) {
      case OpKind::reduce_grad:
      case OpKind::unshard:
        return first_of_shards(instance);
      case OpKind::reduce_replicas:
        return first_with_shard(instance);
      case OpKind::reduce_tied:
        return beside(instance, Axis::pp, 0);
      default:
        return is_send(op.kind) ? instance : beside(beside(instance, Axis::tp, 0), Axis::cp, 0);
    }
  }

  // The instance of the same pipeline rank in the walked replica that `leaders` names.
  int in_walked_replica(int instance, const std::vector<int>& leaders) const {
    return leaders[static_cast<std::size_t>(instance / schedule_.pp)] * schedule_.pp +
           instance % schedule_.pp;
  }

  TaskId& slot(int instance, std::size_t op) {
    return tasks_.task_of[tasks_.first_op[static_cast<std::size_t>(instance)] + op];
  }

  TaskId new_task(OpRef leader, OpRef peer) {
    tasks_.leader.push_back(leader);
    tasks_.peer.push_back(peer);
    return static_cast<TaskId>(tasks_.leader.size() - 1);
  }

  void join_ops() {
    std::vector<std::vector<OpRef>> receive_of = match_sends();
    for (int i = 0; i < static_cast<int>(tasks_.instances.size()); ++i) {
      const Instance& instance = tasks_.instances[static_cast<std::size_t>(i)];
      const RankOps& list = list_of(instance);
      std::size_t sends = 0;
      for (std::size_t k = 0; k < list.size(); ++k) {
        const Op& op = list[k];
        const OpRef self{i, static_cast<std::int32_t>(k)};
        if (is_receive(op.kind)) continue;  // joined by its sender
        if (is_send(op.kind)) {
          const OpRef receive = receive_of[static_cast<std::size_t>(instance.pipeline_rank)][sends++];
          const OpRef peer{beside(i, Axis::pp, receive.instance), receive.op};
          slot(peer.instance, static_cast<std::size_t>(peer.op)) = slot(i, k) = new_task(self, peer);
          continue;
        }
        const int leader = leader_of(i, op);
        slot(i, k) = leader == i ? new_task(self, self) : slot(leader, op_at_leader(leader, i, k));
      }
    }
  }

  // Ops of one kind are at the same index in all lists that share a pipeline rank. REDUCE_TIED spans two
  // lists.
  std::size_t op_at_leader(int leader, int instance, std::size_t op) const {
    const Instance& first = tasks_.instances[static_cast<std::size_t>(leader)];
    if (first.pipeline_rank == tasks_.instances[static_cast<std::size_t>(instance)].pipeline_rank) return op;
    const RankOps& list = list_of(first);
    for (std::size_t i = list.size(); i-- > 0;) {
      if (list[i].kind == OpKind::reduce_tied) return i;
    }
    throw InputError({"", "schedule", "REDUCE_TIED is missing on the first pipeline rank", "", ""});
  }

  // By pipeline rank: the receives of its sends, in list order.
  std::vector<std::vector<OpRef>> match_sends() const {
    Receives receives(schedule_);
    std::vector<std::vector<OpRef>> matched(schedule_.ranks.size());
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (const Op& op : schedule_.ranks[rank].ops()) {
        if (is_send(op.kind)) matched[rank].push_back(receives.take(op));
      }
    }
    receives.require_all_taken(schedule_);
    return matched;
  }

  std::size_t queue_of(const Op& op) const {
    if (options_.one_queue) return 0;
    const auto stream = static_cast<std::size_t>(op.stream);
    return options_.one_message_queue && op.stream != Stream::compute ? 1 : stream;
  }

  void connect() {
    std::vector<std::pair<TaskId, TaskId>> edges;
    edges.reserve(2 * tasks_.task_of.size());
    tasks_.waits.assign(tasks_.size(), 0);
    const auto edge = [&](TaskId before, TaskId after) {
      edges.emplace_back(before, after);
      ++tasks_.waits[after];
    };
    for (std::size_t i = 0; i < tasks_.instances.size(); ++i) {
      const RankOps& list = list_of(tasks_.instances[i]);
      std::array<std::int32_t, kStreams> last;
      last.fill(kNone);
      for (std::size_t k = 0; k < list.size(); ++k) {
        const TaskId task = tasks_.task(static_cast<int>(i), k);
        std::int32_t& before = last[queue_of(list[k])];
        if (before != kNone) edge(tasks_.task(static_cast<int>(i), static_cast<std::size_t>(before)), task);
        for (const std::int32_t wait : list.waits(list[k])) {
          if (wait != before) edge(tasks_.task(static_cast<int>(i), static_cast<std::size_t>(wait)), task);
        }
        before = static_cast<std::int32_t>(k);
      }
    }
    sort_by_source(edges);
  }

  void sort_by_source(const std::vector<std::pair<TaskId, TaskId>>& edges) {
    std::vector<std::uint32_t>& first = tasks_.first_next;
    first.assign(tasks_.size() + 1, 0);
    for (const auto& [before, after] : edges) ++first[before + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::uint32_t> at(first.begin(), first.end());
    tasks_.next.resize(edges.size());
    for (const auto& [before, after] : edges) tasks_.next[at[before]++] = after;
  }

  const Schedule& schedule_;
  RankGrid grid_;
  int shard_;  // data-parallel ranks of a sharding group
  TaskOptions options_;
  std::vector<int> group_leader_, position_leader_;  // by walked replica
  Tasks tasks_;
};

}  // namespace

Tasks derive_tasks(const Schedule& schedule, const Plan& plan, const TaskOptions& options) {
  return TaskBuilder(schedule, plan, options).run();
}

std::vector<TaskId> topological_order(const Tasks& tasks) {
  std::vector<std::uint32_t> waits = tasks.waits;
  std::vector<TaskId> order;
  order.reserve(tasks.size());
  for (TaskId task = 0; task < tasks.size(); ++task) {
    if (waits[task] == 0) order.push_back(task);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const TaskId after : tasks.after(order[next]))
      if (--waits[after] == 0) order.push_back(after);
  }
  return order;
}

}  // namespace rehearse
