// Ranks on partitions of one GPU: how much of their time do they compute concurrently, and how long does a
// step take?
#include "run/gpu_sharing.h"

#include <gtest/gtest.h>

#include "model/model.h"

namespace rehearse {
namespace {

Experiment halves(int microbatches) {
  Experiment experiment;
  experiment.model = read_model(SOURCE_DIR "/scenarios/models/gpt-420m.json");
  experiment.cluster = read_cluster("h100-halves");
  experiment.profile = read_profile("h100-sxm");
  experiment.plan.pp = 2;
  experiment.plan.seq = 512;
  experiment.profile.host_launch_s = experiment.profile.host_collective_s = experiment.profile.launch_s = 0;
  experiment.plan.global_batch = microbatches;
  experiment.engine = Engine::reference;
  experiment.with_band = false;
  return experiment;
}

// All kernels of passes take twice as long while the other rank computes.
Experiment in_company_of_one(int microbatches) {
  Experiment experiment = halves(microbatches);
  experiment.profile.measurement.emplace();
  Slowdowns& slowdowns = experiment.profile.measurement->with_concurrent_ranks.emplace();
  slowdowns.others = 1;
  for (const auto& [name, samples] : experiment.profile.gemm) slowdowns.gemm[name] = 2;
  for (const auto& [name, samples] : experiment.profile.stream) slowdowns.stream[name] = 2;
  slowdowns.attention = {{"forward", 2}, {"backward", 2}};
  return experiment;
}

// A timeline of the given passes of ranks 0 and 1, in their order.
Timeline timeline_of(const Schedule& schedule, const std::vector<std::vector<Span>>& passes) {
  Timeline timeline;
  for (std::size_t rank = 0; rank < passes.size(); ++rank) {
    TimelineRank& own = timeline.ranks.emplace_back();
    own.instance = {static_cast<int>(rank), static_cast<int>(rank)};
    std::size_t next = 0;
    const RankOps& ops = schedule.ranks[rank];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const bool is_pass = ops[i].kind == OpKind::forward || ops[i].kind == OpKind::backward;
      own.spans.push_back(is_pass ? passes[rank].at(next++) : Span{0, 100});
    }
  }
  return timeline;
}

TEST(ConcurrentLoad, IsTheShareOfTheTimeThatBothCompute) {
  const Schedule schedule = prepare(halves(1)).schedule;
  const auto share = [&](const std::vector<std::vector<Span>>& passes) {
    return concurrent_compute(timeline_of(schedule, passes), schedule, 2, 1);
  };
  EXPECT_DOUBLE_EQ(share({{{0, 1}, {1, 2}}, {{1, 2}, {2, 3}}}), 0.5);
  EXPECT_DOUBLE_EQ(share({{{0, 1}, {1, 2}}, {{0, 1}, {1, 2}}}), 1);
  EXPECT_DOUBLE_EQ(share({{{0, 1}, {3, 4}}, {{1, 2}, {2, 3}}}), 0);
}

TEST(ConcurrentLoad, OfRanksThatTakeTurnsCostsNothing) {
  EXPECT_NEAR(run_iteration(in_company_of_one(1)).report.step_time_s,
              run_iteration(halves(1)).report.step_time_s, 1e-12);
}

// Two stages of m microbatches: each computes in m of m + 1 slots, and in m - 1 of them with the other.
TEST(ConcurrentLoad, OfManyMicrobatchesSlowsAlmostAll) {
  const double alone = run_iteration(halves(32)).report.step_time_s;
  const double beside = run_iteration(in_company_of_one(32)).report.step_time_s;
  EXPECT_GT(beside, 1.85 * alone);
  EXPECT_LT(beside, 2 * alone);
}

}  // namespace
}  // namespace rehearse
