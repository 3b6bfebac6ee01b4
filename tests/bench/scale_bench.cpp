// How does a simulation grow with the cluster?
//
// Everything walked, all links of a 2:1 oversubscribed fabric shared: nothing is folded. Folded: one replica
// is walked, whatever their number. Platform: SimGrid's links and hosts for a port each way of every GPU and
// NIC. Each simulation runs in a child of its own and reports the seconds that it took and the memory that it
// reached.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "model/read.h"
#include "run/iteration.h"
#include "run/link_table.h"
#include "run/platform.h"
#include "run/simulate.h"

namespace rehearse {
namespace {

// {seconds, most memory in MB} of `work` in a child process.
template <typename Work>
std::array<double, 2> cost_in_child(Work work) {
  int ends[2];
  std::array<double, 2> cost{-1, -1};
  if (pipe(ends) != 0) return cost;
  if (fork() == 0) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    cost[0] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    cost[1] = static_cast<double>(usage.ru_maxrss) * 1e-3;
    _exit(write(ends[1], cost.data(), sizeof cost) == sizeof cost ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], cost.data(), sizeof cost) != sizeof cost) cost = {-1, -1};
  close(ends[0]);
  wait(nullptr);
  return cost;
}

// Llama 3 70B: tp 8, pp 8, the rest replicas, 16 microbatches each.
Experiment llama(std::int64_t gpus, double oversubscription) {
  Experiment experiment;
  experiment.model = read_model("llama3-70b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.cluster.fabric.levels.front().oversubscription = oversubscription;
  experiment.profile = read_profile(experiment.cluster.profile);
  Plan& plan = experiment.plan;
  plan.tp = plan.pp = 8;
  plan.dp = static_cast<int>(gpus / 64);
  plan.global_batch = 16 * plan.dp;
  plan.sequence_parallel = true;
  return experiment;
}

void run(benchmark::State& state, const Experiment& experiment) {
  for (auto _ : state) {
    const auto [seconds, megabytes] = cost_in_child([&] { run_iteration(experiment); });
    state.SetIterationTime(seconds);
    state.counters["MB"] = megabytes;
  }
}

void NothingFoldedFullContention(benchmark::State& state) {
  Experiment experiment = llama(state.range(0), 2);
  experiment.fold = Fold::none;
  run(state, experiment);
}

void NothingFoldedNonBlocking(benchmark::State& state) {
  Experiment experiment = llama(state.range(0), 1);
  experiment.fold = Fold::none;
  run(state, experiment);
}

void Folded(benchmark::State& state) {
  run(state, llama(state.range(0), 1));
}

void FoldedOversubscribed(benchmark::State& state) {
  run(state, llama(state.range(0), 2));
}

void OneStraggler(benchmark::State& state) {
  Experiment experiment = llama(state.range(0), 1);
  experiment.conditions.slow = parse_slow("rank=17:0.8");
  run(state, experiment);
}

void BuildPlatform(benchmark::State& state) {
  const Cluster cluster = read_cluster("dgx-h100");
  for (auto _ : state) {
    const auto [seconds, megabytes] = cost_in_child([&] {
      LinkTable table(cluster, {});
      for (std::int64_t gpu = 0; gpu < state.range(0); ++gpu) {
        table.gpu_port(gpu / 8, static_cast<int>(gpu % 8));
        table.nic_port({gpu / 8, static_cast<int>(gpu % 8)});
      }
      const Platform platform(table.capacity(), table.ends());
    });
    state.SetIterationTime(seconds);
    state.counters["MB"] = megabytes;
  }
}

BENCHMARK(NothingFoldedFullContention)
    ->Arg(256)
    ->Arg(1024)
    ->Arg(4096)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(NothingFoldedNonBlocking)
    ->Arg(1024)
    ->Arg(4096)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Folded)->Arg(1024)->Arg(16384)->Arg(131072)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(FoldedOversubscribed)->Arg(16384)->Arg(131072)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(OneStraggler)->Arg(1024)->Arg(16384)->Arg(131072)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BuildPlatform)
    ->Arg(4096)
    ->Arg(32768)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

BENCHMARK_MAIN();
