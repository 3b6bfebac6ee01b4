#include "run/simulate.h"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <simgrid/version.h>  // needs definitions of s4u.hpp

#include <fmt/core.h>

#include <functional>
#include <stdexcept>
#include <unordered_map>

#include "run/platform.h"
#include "run/reference.h"

namespace rehearse {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

// Not unnamed, as Simulator::Engine has a member of it.
namespace simulation {

class Walk;

// Flows on the links, each with its task, until SimGrid reports their end.
class RunningFlows {
 public:
  explicit RunningFlows(const Loads& loads) : platform_(loads.capacity, loads.ends) {
#if SIMGRID_VERSION >= 33400
    s4u::Comm::on_completion_cb([this](const s4u::Comm& comm) { ended(comm); });
#else
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) { ended(activity); });
#endif
  }

  void start(Walk& walk, TaskId task, const Flow& flow) {
    s4u::CommPtr comm =
        s4u::Comm::sendto_async(platform_.host(flow.ends.out), platform_.host(flow.ends.in), flow.bytes);
    const s4u::Activity* key = comm.get();
    running_.emplace(key, Running{std::move(comm), &walk, task});
  }

  void run() {
    platform_.engine().run();
  }

 private:
  void ended(const s4u::Activity& activity);

  struct Running {
    s4u::CommPtr comm;
    Walk* walk;
    TaskId task;
  };

  Platform platform_;
  std::unordered_map<const s4u::Activity*, Running> running_;
  s4u::CommPtr last_;  // SimGrid still holds it while it calls back
};

// Walks the tasks as their predecessors end. An activity exists only while it runs: SimGrid 3.32 slows down
// quadratically with activities that wait.
class Walk {
 public:
  Walk(const Tasks& tasks, RunningFlows& flows)
      : tasks_(tasks), flows_(flows), left_(tasks.size()), begins_(tasks.size()), ends_(tasks.size()) {}

  // May be called again when all have ended. SimGrid's clock runs on; begins() and ends() count from here.
  void begin(const Loads& loads) {
    loads_ = &loads;
    waits_ = tasks_.waits;
    steps_.assign(loads.inside.op_of.size(), 0);
    ended_ = 0;
    start_ = s4u::Engine::get_clock();
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (waits_[task] == 0) ready_.push_back(task);
    }
    begin_ready(start_);
  }

  void run(const Loads& loads) {
    begin(loads);
    flows_.run();
    require_ended();
  }

  void flow_ended(TaskId task) {
    const double now = s4u::Engine::get_clock();
    part_ended(task, now);
    begin_ready(now);
  }

  std::function<void()> on_end;  // called when all tasks have ended

  bool has_ended() const { return ended_ == tasks_.size(); }
  void require_ended() const {
    if (!has_ended()) throw std::logic_error("the schedule deadlocks; check it before running it");
  }
  double start() const { return start_; }
  const std::vector<double>& begins() const { return begins_; }
  const std::vector<double>& ends() const { return ends_; }
  const SimulationStatistics& statistics() const { return statistics_; }

 private:
  // A queue, not recursion: tasks that take no time may follow each other in long chains.
  void begin_ready(double now) {
    while (!ready_.empty()) {
      const TaskId task = ready_.back();
      ready_.pop_back();
      begins_[task] = now - start_;
      if (loads_->inside.of(task) != nullptr) {
        go_on(task, now);
      } else if (loads_->fixed_s[task] == 0) {
        start_flows(task, now);
      } else {
        at(now + loads_->fixed_s[task], [this, task](double date) { start_flows(task, date); });
      }
    }
    if (has_ended() && on_end) on_end();
  }

  template <typename Then>
  void at(double date, Then&& then) {
    ++statistics_.timers;
    Timer::set(date, [this, date, then] {
      then(date);
      begin_ready(date);
    });
  }

  void start_flows(TaskId task, double now) {
    const std::span<const Flow> flows = loads_->flows_of(task);
    if (flows.empty()) return end(task, now);
    left_[task] = static_cast<std::uint32_t>(flows.size());
    for (const Flow& flow : flows) start(task, flow);
  }

  void start(TaskId task, const Flow& flow) {
    flows_.start(*this, task, flow);
    ++statistics_.flows;
  }

  // Starts the next step of an op with rounds that takes any time; the op ends after the last one. Step 0 of
  // a round are its kernels. Steps 2 g + 1 and 2 g + 2 are the exposed transfers of group g and its window. A
  // step never becomes shorter than priced: links may seem free only because members whose ops are other
  // tasks send later.
  void go_on(TaskId task, double now) {
    const ContendedOp& op = *loads_->inside.of(task);
    constexpr std::uint32_t kSteps = 2 * kInnerGroups + 1;
    while (steps_[task] < kSteps * static_cast<std::uint32_t>(op.rounds)) {
      const std::uint32_t step = steps_[task]++ % kSteps;
      const Transfers& of_group = op.round[step == 0 ? 0 : (step - 1) / 2];
      const bool in_window = step % 2 == 0;
      const double alone_s = step == 0   ? (loads_->fixed_s[task] - loads_->wait_s(task)) / op.rounds
                             : in_window ? of_group.window_s
                                         : of_group.exposed_s;
      const double moving_s = step == 0 ? 0 : in_window ? of_group.beside_s : of_group.exposed_s;
      const double bytes = in_window ? of_group.beside_bytes : of_group.exposed_bytes;
      left_[task] = 0;
      if (moving_s > 0) {
        for (const FlowRate& pace : loads_->inside.rates_of(op, (step - 1) / 2)) {
          start(task, pace.flow(moving_s, bytes));
          ++left_[task];
        }
      }
      if (alone_s > 0) {
        ++left_[task];
        at(now + alone_s, [this, task](double date) { part_ended(task, date); });
      }
      if (left_[task] > 0) return;
    }
    // Kernels and messages may end before the host has launched all of them.
    const double launched = start_ + begins_[task] + loads_->fixed_s[task] + op.priced_s;
    if (loads_->wait_s(task) > 0 && now < launched)
      return at(launched, [this, task](double date) { end(task, date); });
    end(task, now);
  }

  void part_ended(TaskId task, double now) {
    if (--left_[task] > 0) return;
    if (loads_->inside.of(task) != nullptr) return go_on(task, now);
    end(task, now);
  }

  void end(TaskId task, double now) {
    ends_[task] = now - start_;
    ++ended_;
    for (const TaskId next : tasks_.after(task))
      if (--waits_[next] == 0) ready_.push_back(next);
  }

  const Tasks& tasks_;
  const Loads* loads_ = nullptr;  // of the run under way
  RunningFlows& flows_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint32_t> left_;   // by task: flows and timers of the step that it is in
  std::vector<std::uint32_t> steps_;  // by task with rounds: begun so far
  std::vector<TaskId> ready_;
  std::vector<double> begins_;
  std::vector<double> ends_;
  std::size_t ended_ = 0;
  double start_ = 0;  // SimGrid's clock when the run began
  SimulationStatistics statistics_;
};

void RunningFlows::ended(const s4u::Activity& activity) {
  const auto found = running_.find(&activity);
  const Running flow = std::move(found->second);
  running_.erase(found);
  flow.walk->flow_ended(flow.task);
  last_ = flow.comm;
}

}  // namespace simulation

using simulation::RunningFlows;
using simulation::Walk;

struct Simulator::Engine {
  explicit Engine(const Loads& links) : flows(links), capacity(links.capacity), ends(links.ends) {}

  RunningFlows flows;
  std::vector<double> capacity;
  std::vector<std::vector<LinkId>> ends;
};

Simulator::Simulator(const Loads& links) : engine_(std::make_unique<Engine>(links)) {}
Simulator::~Simulator() = default;

Timeline Simulator::run(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                        SimulationStatistics* statistics) {
  if (loads.capacity != engine_->capacity || loads.ends != engine_->ends)
    throw std::logic_error("the runs of one simulator cross the same links");
  Walk walk(tasks, engine_->flows);
  walk.run(loads);
  if (statistics != nullptr) *statistics = walk.statistics();
  return spread(schedule, tasks, loads, walk.begins(), walk.ends());
}

Timeline simulate(const Schedule& schedule, const Tasks& tasks, const Loads& loads,
                  SimulationStatistics* statistics) {
  return Simulator(loads).run(schedule, tasks, loads, statistics);
}

Neighbours simulate_neighbours(const Job& own, const Job& other) {
  RunningFlows flows(own.loads);
  Walk walk(own.tasks, flows), beside(other.tasks, flows);
  Neighbours neighbours;
  beside.on_end = [&] {
    neighbours.other_step_times_s.push_back(s4u::Engine::get_clock() - beside.start());
    if (!walk.has_ended()) beside.begin(other.loads);
  };
  walk.begin(own.loads);
  beside.begin(other.loads);
  flows.run();
  walk.require_ended();
  beside.require_ended();
  if (neighbours.other_step_times_s.size() > 1) neighbours.other_step_times_s.pop_back();  // partly alone
  neighbours.own = spread(own.schedule, own.tasks, own.loads, walk.begins(), walk.ends());
  return neighbours;
}

std::string simgrid_version() {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace rehearse
