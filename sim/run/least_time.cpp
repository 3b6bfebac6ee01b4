#include "run/least_time.h"

#include <algorithm>
#include <map>
#include <queue>
#include <span>
#include <stdexcept>
#include <utility>

#include "run/reference.h"

namespace rehearse {

namespace {

constexpr double kEarlyEnd_s = 1e-9;  // of a transfer in SimGrid (precision/timing)
constexpr double kSumRounding = 1e-9;

class LeastTime {
 public:
  LeastTime(const Tasks& tasks, const Loads& loads)
      : tasks_(tasks),
        loads_(loads),
        order_(topological_order(tasks)),
        seconds_(tasks.size()),
        tails_(tasks.size()),
        bytes_(loads.capacity.size()),
        jobs_(loads.capacity.size()) {
    if (order_.size() != tasks.size())
      throw std::logic_error("the schedule deadlocks; check it before running it");
  }

  double run() {
    for (TaskId task = 0; task < tasks_.size(); ++task)
      seconds_[task] = std::max(0.0, loads_.alone_s(task) - early_s(task));
    double least = longest_path(tasks_, order_, seconds_, begins_);
    find_tails();
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (const ContendedOp* op = loads_.inside.of(task)) {
        add_inside(task, *op);
      } else if (!loads_.flows_of(task).empty()) {
        for (const Flow& flow : loads_.flows_of(task)) put(flow);
        add_jobs(take(), begins_[task] + loads_.fixed_s[task], tails_[task]);
      }
    }
    for (std::vector<LinkJob>& of_link : jobs_) least = std::max(least, jackson_end(of_link));
    return least * (1 - kSumRounding);
  }

 private:
  // The most by which all transfers of a task end early.
  double early_s(TaskId task) const {
    if (const ContendedOp* op = loads_.inside.of(task))
      return kEarlyEnd_s * op->rounds * 2 * static_cast<double>(kInnerGroups);
    return loads_.flows_of(task).empty() ? 0 : kEarlyEnd_s;
  }

  void find_tails() {
    for (std::size_t i = order_.size(); i-- > 0;) {
      double& tail = tails_[order_[i]];
      for (const TaskId next : tasks_.after(order_[i])) tail = std::max(tail, seconds_[next] + tails_[next]);
    }
  }

  void put(const Flow& flow) {
    for (const EndId end : {flow.ends.out, flow.ends.in}) {
      for (const LinkId link : loads_.ends[static_cast<std::size_t>(end)]) {
        double& bytes = bytes_[static_cast<std::size_t>(link)];
        if (bytes == 0) crossed_.push_back(static_cast<std::size_t>(link));
        bytes += static_cast<double>(flow.bytes);
      }
    }
  }

  // Seconds that a transfer takes of each link.
  using LinkSeconds = std::vector<std::pair<std::size_t, double>>;

  // Of the flows that were put().
  LinkSeconds take() {
    LinkSeconds seconds;
    for (const std::size_t link : crossed_)
      seconds.emplace_back(
          link, std::max(0.0, std::exchange(bytes_[link], 0) / loads_.capacity[link] - kEarlyEnd_s));
    crossed_.clear();
    return seconds;
  }

  void add_jobs(const LinkSeconds& transfer, double head_s, double tail_s) {
    for (const auto& [link, seconds] : transfer) jobs_[link].push_back({head_s, seconds, tail_s});
  }

  // A step of a round: flows beside a timer. It is as long as the longest of them.
  struct Step {
    double least_s = 0;
    LinkSeconds transfer;
  };

  Step step_of(std::span<const FlowRate> rates, double moving_s, double bytes, double timer_s) {
    if (moving_s > 0)
      for (const FlowRate& rate : rates) put(rate.flow(moving_s, bytes));
    Step step{timer_s, take()};
    for (const auto& [link, seconds] : step.transfer) step.least_s = std::max(step.least_s, seconds);
    return step;
  }

  // The steps of a round, in the order of the simulator's walk; found once for each op.
  const std::vector<Step>& steps_of(const ContendedOp& op) {
    const auto [found, is_new] = steps_.try_emplace(&op);
    if (!is_new) return found->second;
    for (std::size_t group = 0; group < kInnerGroups; ++group) {
      const Transfers& of = op.round[group];
      const std::span<const FlowRate> rates = loads_.inside.rates_of(op, group);
      found->second.push_back(step_of(rates, of.exposed_s, of.exposed_bytes, of.exposed_s));
      found->second.push_back(step_of(rates, of.beside_s, of.beside_bytes, of.window_s));
    }
    return found->second;
  }

  // Rounds of kernels and steps follow each other. One job stands for a step of all rounds: its head is that
  // of the first, its tail that of the last.
  void add_inside(TaskId task, const ContendedOp& op) {
    const std::vector<Step>& steps = steps_of(op);
    double first_s = (loads_.fixed_s[task] - loads_.wait_s(task)) / op.rounds, last_s = 0;
    for (const Step& step : steps) last_s += step.least_s;
    for (const Step& step : steps) {
      last_s -= step.least_s;
      for (const auto& [link, seconds] : step.transfer)
        jobs_[link].push_back(
            {begins_[task] + first_s, op.rounds * seconds, std::max(0.0, last_s) + tails_[task]});
      first_s += step.least_s;
    }
  }

  const Tasks& tasks_;
  const Loads& loads_;
  std::vector<TaskId> order_;
  std::vector<double> seconds_, begins_, tails_;  // by task; least
  std::vector<double> bytes_;                     // by link, zero between calls of take()
  std::vector<std::size_t> crossed_;              // links with bytes
  std::map<const ContendedOp*, std::vector<Step>> steps_;
  std::vector<std::vector<LinkJob>> jobs_;  // by link
};

}  // namespace

double jackson_end(std::vector<LinkJob>& jobs) {
  std::ranges::sort(jobs, {}, &LinkJob::head_s);
  std::priority_queue<std::pair<double, double>> ready;  // tail, what is left of the job
  double now_s = 0, end_s = 0;
  for (std::size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now_s = std::max(now_s, jobs[next].head_s);
    for (; next < jobs.size() && jobs[next].head_s <= now_s; ++next)
      ready.emplace(jobs[next].tail_s, jobs[next].length_s);
    const auto [tail_s, left_s] = ready.top();
    ready.pop();
    const double until_s = next < jobs.size() ? std::min(now_s + left_s, jobs[next].head_s) : now_s + left_s;
    if (until_s < now_s + left_s) {
      ready.emplace(tail_s, left_s - (until_s - now_s));
    } else {
      end_s = std::max(end_s, until_s + tail_s);
    }
    now_s = until_s;
  }
  return end_s;
}

double least_time(const Tasks& tasks, const Loads& loads) {
  return LeastTime(tasks, loads).run();
}

double least_time_of_any_fold(const Tasks& tasks, const Loads& loads, const MessageTimes& message_s) {
  std::vector<double> seconds(tasks.size()), begins;
  for (TaskId task = 0; task < tasks.size(); ++task) {
    const ContendedOp* op = loads.inside.of(task);
    seconds[task] = message_s[task] >= 0 ? std::max(0.0, message_s[task] - kEarlyEnd_s)
                                         : loads.fixed_s[task] + (op != nullptr ? op->priced_s : 0);
  }
  return longest_path(tasks, topological_order(tasks), seconds, begins) * (1 - kSumRounding);
}

}  // namespace rehearse
