#include "run/slowdown.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "result/shares.h"
#include "run/reference.h"

namespace rehearse {

namespace {

constexpr int kMostRounds = 8;
constexpr double kSettled = 1e-3;

// One GPU's tasks in issue order; kernels run in it, one after the other.
struct Lane {
  std::vector<TaskId> collectives, kernels;
};

class SideBySide {
 public:
  SideBySide(const Schedule& schedule, const Tasks& tasks, const OpTimes& times, const Loads& loads)
      : tasks_(tasks), loads_(loads), order_(topological_order(tasks)), kernels_s_(tasks.size()) {
    for (std::size_t i = 0; i < tasks.instances.size(); ++i) {
      const int rank = tasks.instances[i].pipeline_rank;
      const std::vector<Op>& ops = schedule.ranks[static_cast<std::size_t>(rank)].ops();
      Lane& lane = lanes_.emplace_back();
      for (std::size_t op = 0; op < ops.size(); ++op) {
        const TaskId task = tasks.task(static_cast<int>(i), op);
        if (loads.taken[task] > 0) lane.collectives.push_back(task);
        if (!is_compute(ops[op].kind)) continue;
        const TimeParts parts = priced_parts(ops[op], rank, times);
        kernels_s_[task] = (parts.compute + parts.recompute) / ops[op].parts;
        lane.kernels.push_back(task);
      }
    }
  }

  // By task.
  std::vector<double> lost() {
    const double most = *std::max_element(loads_.taken.begin(), loads_.taken.end());
    std::vector<double> seconds(tasks_.size()), lost(tasks_.size());
    double before = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      for (TaskId task = 0; task < tasks_.size(); ++task) seconds[task] = loads_.alone_s(task) + lost[task];
      find(seconds, lost);
      // A kernel beside collectives all along takes 1 / (1 - taken) of its time.
      for (TaskId task = 0; task < tasks_.size(); ++task)
        lost[task] = std::min(lost[task], kernels_s_[task] * most / (1 - most));
      const double all = std::accumulate(lost.begin(), lost.end(), 0.0);
      if (std::abs(all - before) <= kSettled * all) break;
      before = all;
    }
    return lost;
  }

 private:
  void find(std::span<const double> seconds, std::vector<double>& lost) {
    longest_path(tasks_, order_, seconds, begins_);
    std::fill(lost.begin(), lost.end(), 0);
    for (const Lane& lane : lanes_) {
      for (const TaskId collective : lane.collectives) add(lane, collective, seconds, lost);
    }
  }

  void add(const Lane& lane, TaskId collective, std::span<const double> seconds, std::vector<double>& lost) {
    const double begin = begins_[collective], end = begin + seconds[collective];
    auto kernel =
        std::lower_bound(lane.kernels.begin(), lane.kernels.end(), begin,
                         [&](TaskId task, double time) { return begins_[task] + seconds[task] <= time; });
    for (; kernel != lane.kernels.end() && begins_[*kernel] < end; ++kernel) {
      const double from = std::max(begin, begins_[*kernel]);
      const double to = std::min(end, begins_[*kernel] + seconds[*kernel]);
      lost[*kernel] += loads_.taken[collective] * std::max(0.0, to - from);
    }
  }

  const Tasks& tasks_;
  const Loads& loads_;
  std::vector<TaskId> order_;
  std::vector<double> kernels_s_;  // by task: of a compute op, without its own collectives
  std::vector<Lane> lanes_;
  std::vector<double> begins_;
};

}  // namespace

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
