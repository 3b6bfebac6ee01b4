#include "run/slowdown.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "cost/contention.h"
#include "result/shares.h"

namespace rehearse {

namespace {

// One GPU: the collectives under way, and the ops whose kernels run beside them.
struct Lane {
  std::vector<TaskId> collectives, computing;
};

// Walks the tasks in time, without contention on links. Where a collective begins or ends, the ops of its
// GPUs continue at another rate.
class SideBySide {
 public:
  SideBySide(const Schedule& schedule, const Tasks& tasks, const OpTimes& times, const Loads& loads)
      : tasks_(tasks),
        loads_(loads),
        waits_(tasks.waits),
        kernels_(tasks.size()),
        lanes_(tasks.instances.size()),
        left_s_(tasks.size()),
        waits_s_(tasks.size()),
        since_(tasks.size()),
        end_(tasks.size()),
        lost_s_(tasks.size()) {
    for (std::size_t i = 0; i < tasks.instances.size(); ++i) {
      const int rank = tasks.instances[i].pipeline_rank;
      const std::vector<Op>& ops = schedule.ranks[static_cast<std::size_t>(rank)].ops();
      for (std::size_t op = 0; op < ops.size(); ++op) {
        const TaskId task = tasks.task(static_cast<int>(i), op);
        if (loads.taken[task] > 0) lanes_of_.emplace_back(task, i);
        if (!is_compute(ops[op].kind) || !(loads.alone_s(task) > 0)) continue;
        const TimeParts parts = priced_parts(ops[op], rank, times);
        const double kernels_s = (parts.compute + parts.recompute - parts.waits) / ops[op].parts;
        kernels_[task] = std::clamp(kernels_s / loads.alone_s(task), 0.0, 1.0);
        waits_s_[task] = loads.wait_s(task);
      }
    }
    std::sort(lanes_of_.begin(), lanes_of_.end());
  }

  // Lost seconds by task.
  std::vector<double> lost() && {
    for (TaskId task = 0; task < tasks_.size(); ++task)
      if (waits_[task] == 0) begin(task, 0);
    while (!ends_.empty()) {
      const auto [time, task] = ends_.top();
      ends_.pop();
      if (time == end_[task]) end(task, time);  // else it ends at another time than was expected
    }
    return std::move(lost_s_);
  }

 private:
  Lane& lane_of(TaskId computing) {
    return lanes_[static_cast<std::size_t>(tasks_.leader[computing].instance)];
  }

  template <typename Visit>
  void each_lane(TaskId collective, Visit&& visit) {
    auto at = std::lower_bound(lanes_of_.begin(), lanes_of_.end(), std::pair(collective, std::size_t{0}));
    for (; at != lanes_of_.end() && at->first == collective; ++at) visit(lanes_[at->second]);
  }

  // Kernels run at the rest of the rate. The op's own collectives do not slow down.
  double rate(TaskId computing) {
    double taken = 0;
    for (const TaskId collective : lane_of(computing).collectives) taken += loads_.taken[collective];
    const double rest = 1 - std::min(kMaxTaken, taken);
    return rest / (rest + kernels_[computing] * (1 - rest));
  }

  void go_on(Lane& lane, double now) {
    for (const TaskId task : lane.computing) {
      const double passed_s = now - std::exchange(since_[task], now);
      const double lost_s = passed_s * (1 - rate(task)), hidden_s = std::min(lost_s, waits_s_[task]);
      waits_s_[task] -= hidden_s;
      left_s_[task] -= passed_s - lost_s + hidden_s;
      lost_s_[task] += lost_s;
    }
  }

  void expect(TaskId task, double time) {
    end_[task] = time;
    ends_.emplace(time, task);
  }

  // Delays of kernels are hidden as long as the GPU would otherwise wait for the host.
  double end_of(TaskId computing, double now) {
    const double left_s = std::max(0.0, left_s_[computing]), of_rate = rate(computing);
    if (left_s * (1 - of_rate) <= waits_s_[computing]) return now + left_s;
    return now + (left_s - waits_s_[computing]) / of_rate;
  }

  void expect_ends(const Lane& lane, double now) {
    for (const TaskId task : lane.computing) expect(task, end_of(task, now));
  }

  void begin(TaskId task, double now) {
    if (loads_.taken[task] > 0) {
      each_lane(task, [&](Lane& lane) {
        go_on(lane, now);
        lane.collectives.push_back(task);
        expect_ends(lane, now);
      });
    }
    const double alone_s = loads_.alone_s(task);
    if (kernels_[task] == 0) return expect(task, now + alone_s);
    lane_of(task).computing.push_back(task);
    left_s_[task] = alone_s;
    since_[task] = now;
    expect(task, end_of(task, now));
  }

  void end(TaskId task, double now) {
    end_[task] = -1;
    if (loads_.taken[task] > 0) {
      each_lane(task, [&](Lane& lane) {
        go_on(lane, now);
        std::erase(lane.collectives, task);
        expect_ends(lane, now);
      });
    }
    if (kernels_[task] > 0) {
      Lane& lane = lane_of(task);
      go_on(lane, now);
      std::erase(lane.computing, task);
    }
    for (const TaskId next : tasks_.after(task))
      if (--waits_[next] == 0) begin(next, now);
  }

  using End = std::pair<double, TaskId>;

  const Tasks& tasks_;
  const Loads& loads_;
  std::vector<std::uint32_t> waits_;
  std::vector<double> kernels_;  // by task: of a compute op, the part of its time in which kernels run
  std::vector<Lane> lanes_;      // by instance
  std::vector<std::pair<TaskId, std::size_t>> lanes_of_;  // by collective, ascending
  std::vector<double> left_s_, waits_s_, since_;          // by task that computes
  std::vector<double> end_;                               // by task: expected; -1: it has ended
  std::vector<double> lost_s_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace

void Loads::slow(TaskId task, double seconds) {
  if (!waits_s.empty()) {
    const double hidden_s = std::min(seconds, waits_s[task]);
    waits_s[task] -= hidden_s;
    seconds -= hidden_s;
  }
  if (seconds == 0) return;
  if (slowed_s.empty()) slowed_s.resize(fixed_s.size(), 0);
  slowed_s[task] += seconds;
  fixed_s[task] += seconds;
}

Delays delays_beside_collectives(const Schedule& schedule, const Tasks& tasks, const OpTimes& times,
                                 const Loads& loads) {
  if (std::none_of(loads.taken.begin(), loads.taken.end(), [](double share) { return share > 0; })) return {};
  const std::vector<double> lost = SideBySide(schedule, tasks, times, loads).lost();
  Delays delays(schedule.ranks.size());
  for (std::size_t i = 0; i < tasks.instances.size(); ++i) {
    const auto rank = static_cast<std::size_t>(tasks.instances[i].pipeline_rank);
    for (std::size_t op = 0; op < schedule.ranks[rank].size(); ++op)
      delays[rank].push_back(lost[tasks.task(static_cast<int>(i), op)]);
  }
  return delays;
}

void delay(const Delays& delays, const Tasks& tasks, Loads& loads) {
  if (delays.empty()) return;
  for (TaskId task = 0; task < tasks.size(); ++task) {
    const OpRef leader = tasks.leader[task];
    const Instance& instance = tasks.instances[static_cast<std::size_t>(leader.instance)];
    loads.slow(task,
               delays[static_cast<std::size_t>(instance.pipeline_rank)][static_cast<std::size_t>(leader.op)]);
  }
}

}  // namespace rehearse
