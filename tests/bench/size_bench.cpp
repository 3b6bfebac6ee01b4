// What does an op of a simulated rank cost in memory and time? The constants of sim/run/size.h are these
// figures.
//
// Each line is the growth from a shorter to a longer step, every microbatch simulated in a child of its own.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "model/read.h"
#include "plan/schedules.h"
#include "run/size.h"

namespace rehearse {
namespace {

// {seconds, most memory in bytes}
std::array<double, 2> cost_in_child(const Experiment& experiment) {
  int ends[2];
  std::array<double, 2> cost{-1, -1};
  if (pipe(ends) != 0) return cost;
  if (fork() == 0) {
    const auto begin = std::chrono::steady_clock::now();
    run_iteration(experiment);
    cost[0] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    cost[1] = static_cast<double>(usage.ru_maxrss) * 1024;
    _exit(write(ends[1], cost.data(), sizeof cost) == sizeof cost ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], cost.data(), sizeof cost) != sizeof cost) cost = {-1, -1};
  close(ends[0]);
  wait(nullptr);
  return cost;
}

Experiment pipeline(ScheduleName schedule, Engine engine, std::int64_t microbatches) {
  Experiment experiment;
  experiment.model = read_model("llama3-8b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile(experiment.cluster.profile);
  experiment.engine = engine;
  experiment.large = experiment.every_microbatch = true;
  Plan& plan = experiment.plan;
  plan.schedule = schedule;
  plan.pp = 8;
  plan.vpp = is_v_shaped(schedule) || schedule == ScheduleName::interleaved ? 2 : 1;
  plan.global_batch = microbatches;
  plan.overlap_p2p = traits(schedule).overlaps_p2p;
  return experiment;
}

void show(ScheduleName schedule, Engine engine) {
  constexpr std::int64_t kShort = 2'000, kLong = 20'000;
  const Experiment shorter = pipeline(schedule, engine, kShort), longer = pipeline(schedule, engine, kLong);
  const auto a = cost_in_child(shorter), b = cost_in_child(longer);
  const double ops = size_of(longer).ops - size_of(shorter).ops;
  fmt::print("{:<18} {:<10} {:6.0f} bytes {:6.2f} us an op, begins at {:.0f} MB\n", to_string(schedule),
             to_string(engine), (b[1] - a[1]) / ops, 1e6 * (b[0] - a[0]) / ops,
             1e-6 * (a[1] - (b[1] - a[1]) / ops * size_of(shorter).ops));
}

}  // namespace
}  // namespace rehearse

int main() {
  using namespace rehearse;
  for (const Engine engine : {Engine::reference, Engine::simgrid})
    for (const ScheduleName schedule : {ScheduleName::gpipe, ScheduleName::one_f_one_b,
                                        ScheduleName::interleaved, ScheduleName::zb_h1, ScheduleName::v_half})
      show(schedule, engine);
}
