// How fast are schedules made, simulated by the two engines, and replayed in the allocator?
//
// Bounds: the longest path touches each task and each edge once (about 3 edges a task, 12 bytes each).
// SimGrid pays a heap insertion and removal for each timer. SimGrid allows one simulation a process, so each
// of its measurements runs in a child process, which reports its seconds. The allocator searches a sorted set
// for each allocation and release, and writes one slot.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "memory/memory.h"
#include "memory/reserved.h"
#include "model/read.h"
#include "run/iteration.h"
#include "run/reference.h"
#include "run/simulate.h"
#include "schedule/orders.h"
#include "schedule/passes.h"

namespace rehearse {
namespace {

Plan pipeline_plan(const benchmark::State& state) {
  Plan plan;
  plan.pp = static_cast<int>(state.range(0));
  plan.vpp = static_cast<int>(state.range(2));
  plan.global_batch = state.range(1);
  plan.schedule = plan.vpp > 1 ? ScheduleName::interleaved : ScheduleName::one_f_one_b;
  plan.overlap_p2p = true;
  return plan;
}

Schedule pipeline_schedule(const Plan& plan) {
  return add_transfers(make_order(plan), true);
}

Loads compute_only(const Schedule& schedule, const Tasks& tasks) {
  Loads loads;
  loads.transfer_s.assign(tasks.size(), 0);
  loads.first_flow.assign(tasks.size() + 1, 0);
  for (const OpRef leader : tasks.leader) {
    const RankOps& list = schedule.ranks[static_cast<std::size_t>(leader.instance)];
    const OpKind kind = list[static_cast<std::size_t>(leader.op)].kind;
    loads.fixed_s.push_back(!is_compute(kind) ? 5e-6 : kind == OpKind::forward ? 1e-2 : 2e-2);
  }
  return loads;
}

// Seconds that `work` takes in a child process.
template <typename Work>
double seconds_in_child(Work work) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  if (fork() == 0) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
  }
  close(ends[1]);
  double seconds = -1;
  if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds) seconds = -1;
  close(ends[0]);
  wait(nullptr);
  return seconds;
}

void MakeSchedule(benchmark::State& state) {
  const Plan plan = pipeline_plan(state);
  for (auto _ : state) benchmark::DoNotOptimize(pipeline_schedule(plan));
}

void DeriveTasks(benchmark::State& state) {
  const Plan plan = pipeline_plan(state);
  const Schedule schedule = pipeline_schedule(plan);
  for (auto _ : state) benchmark::DoNotOptimize(derive_tasks(schedule, plan));
}

void LongestPath(benchmark::State& state) {
  const Plan plan = pipeline_plan(state);
  const Schedule schedule = pipeline_schedule(plan);
  const Tasks tasks = derive_tasks(schedule, plan);
  const Loads loads = compute_only(schedule, tasks);
  const std::vector<TaskId> order = topological_order(tasks);
  std::vector<double> begins;
  for (auto _ : state) benchmark::DoNotOptimize(longest_path(tasks, order, loads.fixed_s, begins));
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void Simulate(benchmark::State& state) {
  const Plan plan = pipeline_plan(state);
  const Schedule schedule = pipeline_schedule(plan);
  const Tasks tasks = derive_tasks(schedule, plan);
  const Loads loads = compute_only(schedule, tasks);
  for (auto _ : state) {
    state.SetIterationTime(seconds_in_child([&] { simulate(schedule, tasks, loads); }));
  }
  state.counters["timers/s"] =
      benchmark::Counter(static_cast<double>(tasks.size()), benchmark::Counter::kIsIterationInvariantRate);
}

// GPT-3 175B on 1,024 A100: tp 8, pp 8, dp 16, 96 microbatches, full recompute; range(0) chunks.
Experiment gpt3(const benchmark::State& state) {
  Experiment experiment;
  experiment.model = read_model("gpt3-175b");
  experiment.cluster = read_cluster("selene");
  experiment.profile = read_profile(experiment.cluster.profile);
  Plan& plan = experiment.plan;
  plan.tp = plan.pp = 8;
  plan.dp = 16;
  plan.vpp = static_cast<int>(state.range(0));
  plan.global_batch = 1536;
  plan.recompute = Recompute::full;
  plan.schedule = plan.vpp > 1 ? ScheduleName::interleaved : ScheduleName::one_f_one_b;
  plan.overlap_p2p = plan.vpp > 1;
  return experiment;
}

void Gpt3LongestPath(benchmark::State& state) {
  const Experiment experiment = gpt3(state);
  const Preparation ready = prepare(experiment);
  const std::vector<TaskId> order = topological_order(ready.tasks);
  std::vector<double> seconds, begins;
  for (TaskId task = 0; task < ready.tasks.size(); ++task) seconds.push_back(ready.loads.alone_s(task));
  for (auto _ : state) benchmark::DoNotOptimize(longest_path(ready.tasks, order, seconds, begins));
}

void Gpt3Prepare(benchmark::State& state) {
  const Experiment experiment = gpt3(state);
  for (auto _ : state) benchmark::DoNotOptimize(prepare(experiment));
}

void Gpt3Simulate(benchmark::State& state) {
  const Preparation ready = prepare(gpt3(state));
  for (auto _ : state) {
    state.SetIterationTime(seconds_in_child([&] { simulate(ready.schedule, ready.tasks, ready.loads); }));
  }
}

// The first rank's ops, by as many iterations as it takes.
void Gpt3Allocations(benchmark::State& state) {
  const Experiment experiment = gpt3(state);
  const Preparation ready = prepare(experiment);
  const RankOps& ops = ready.schedule.ranks[0];
  const RankMemory memory = rank_memory(ready.schedule, experiment.plan, ready.work)[0];
  for (auto _ : state)
    benchmark::DoNotOptimize(replay_allocations(ops, memory, experiment.plan, ready.work, 80e9));
}

BENCHMARK(MakeSchedule)->Args({64, 512, 2})->Unit(benchmark::kMillisecond);
BENCHMARK(DeriveTasks)->Args({64, 512, 2})->Unit(benchmark::kMillisecond);
BENCHMARK(LongestPath)->Args({64, 512, 2})->Unit(benchmark::kMillisecond);
BENCHMARK(Simulate)->Args({64, 512, 2})->Unit(benchmark::kMillisecond)->UseManualTime();
BENCHMARK(Gpt3Allocations)->Arg(1)->Arg(3)->Unit(benchmark::kMillisecond);
BENCHMARK(Gpt3Prepare)->Arg(1)->Arg(3)->Unit(benchmark::kMillisecond);
BENCHMARK(Gpt3LongestPath)->Arg(1)->Arg(3)->Unit(benchmark::kMillisecond);
BENCHMARK(Gpt3Simulate)->Arg(1)->Arg(3)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
}  // namespace rehearse

BENCHMARK_MAIN();
