// Messages, memory and optimizer steps of ranks that own whole parameters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cases.h"
#include "cost/collectives.h"
#include "in_child.h"
#include "plan/frameworks/traits.h"
#include "plan/sharding.h"
#include "run/reference.h"
#include "run/simulate.h"

namespace rehearse {
namespace {

constexpr double kMemory = 1e12;    // bytes/s
constexpr double kLastByte = 1e-9;  // bytes on links are whole, and a few of them take less

Cluster cluster_of(int gpus, int nics) {
  Cluster cluster = small_cluster(gpus, nics);
  cluster.gpu.memory_bandwidth = kMemory;
  return cluster;
}

Plan owners_plan(int dp, int shard = 0) {
  Plan plan = pipeline_plan(1, 1, dp);
  plan.framework = Framework::internevo;
  plan.zero = 1;
  plan.dp = dp;
  plan.zero_shard = shard;
  return plan;
}

// One stage of 8e6 parameters in bf16 whose owners have these bytes.
MessageSizes sizes_of(std::vector<double> owned) {
  MessageSizes sizes;
  sizes.gradient_bytes = sizes.parameter_bytes = {16e6};
  sizes.owned_bytes = {std::move(owned)};
  return sizes;
}

struct Prepared {
  Schedule schedule;
  Tasks tasks;
  Loads loads;

  Prepared(const Plan& plan, const Cluster& cluster, const Profile& profile, const MessageSizes& sizes,
           Fold fold = Fold::replicas) {
    GradientSync sync{plan.overlap_grad_reduce, false, plan.dp, {2}};
    sync.across = shard_replicas(plan) > 1;
    sync.to_host = plan.offload == Offload::optimizer;
    schedule = complete_schedule(plan, sync);
    tasks = derive_tasks(schedule, plan, {fold, false, false});
    loads = make_loads(schedule, tasks, plan, cluster, profile, {even_times(plan, 1e-3)}, sizes);
  }

  // Time of all ops of a kind, without contention.
  double alone_s(OpKind kind) const {
    double seconds = 0;
    for (std::size_t op = 0; op < schedule.ranks[0].size(); ++op)
      if (schedule.ranks[0][op].kind == kind) seconds += loads.alone_s(tasks.task(0, op));
    return seconds;
  }
};

double ring_s(double bytes, double latency_s, double rate) {
  return latency_s + bytes / rate;
}

TEST(OwnersLoads, BroadcastOneAfterTheOtherInANode) {
  const Prepared run(owners_plan(4), cluster_of(4, 0), flat_profile(), sizes_of({7e6, 5e6, 4e6, 0}));
  const double expected = ring_s(7e6, 1e-6, 100e9) + ring_s(5e6, 1e-6, 100e9) + ring_s(4e6, 1e-6, 100e9);
  EXPECT_NEAR(run.alone_s(OpKind::unshard), expected, kLastByte);
}

// Two NICs of 10 GB/s a node carry the ring; a rank that owns nothing sends nothing.
TEST(OwnersLoads, BroadcastThroughTheNicsAcrossNodes) {
  const Prepared run(owners_plan(4), cluster_of(2, 2), flat_profile(), sizes_of({7e6, 5e6, 4e6, 0}));
  const double expected = ring_s(7e6, 5e-6, 20e9) + ring_s(5e6, 5e-6, 20e9) + ring_s(4e6, 5e-6, 20e9);
  EXPECT_NEAR(run.alone_s(OpKind::unshard), expected, kLastByte);
}

TEST(OwnersLoads, EachBroadcastGoesRoundOnceMoreThanNcclsTables) {
  const Cluster cluster = read_cluster("dgx-a100-80gb");
  const Profile profile = read_profile("a100-sxm-80gb");
  const std::vector<double> owned = {5e6, 5e6, 4e6, 2e6};
  const Prepared run(owners_plan(4), cluster, profile, sizes_of(owned));
  const GroupShape shape = group_shape(cluster, {0, 1, 2, 3});
  double expected = 0;
  for (const double bytes : owned)
    expected += collective_time(profile, cluster, CollectiveOp::broadcast, bytes, shape).total() + 4 * 4e-6;
  EXPECT_NEAR(run.alone_s(OpKind::unshard), expected, kLastByte);
}

TEST(OwnersLoads, AllReduceBucketsAndCopyEachThreeTimes) {
  const Prepared run(owners_plan(4), cluster_of(4, 0), flat_profile(), sizes_of({4e6, 4e6, 4e6, 4e6}));
  const double all_reduce = 2 * ring_s(2 * 3.0 / 4 * 8e6, 1e-6, 100e9);  // two buckets
  EXPECT_NEAR(run.alone_s(OpKind::reduce_grad), all_reduce + 6 * 16e6 / kMemory, kLastByte);
}

TEST(OwnersLoads, SeveralGroupsScatterAndSumAcross) {
  const Prepared run(owners_plan(8, 4), cluster_of(4, 4), flat_profile(), sizes_of({4e6, 4e6, 4e6, 4e6}));
  const double scatter = 2 * ring_s(3.0 / 4 * 8e6, 1e-6, 100e9);
  EXPECT_NEAR(run.alone_s(OpKind::reduce_grad), scatter + 6 * 16e6 / kMemory, kLastByte);
  // Two ranks, one on either node, sum their quarter through a NIC.
  EXPECT_NEAR(run.alone_s(OpKind::reduce_replicas), 2 * ring_s(2 * 1.0 / 2 * 2e6, 5e-6, 10e9), kLastByte);
  EXPECT_NEAR(run.alone_s(OpKind::unshard), 4 * ring_s(4e6, 1e-6, 100e9), kLastByte);
}

// Replicas of experts that lie on every rank gather them evenly after the broadcasts.
TEST(OwnersLoads, ExpertsOnEveryRankAreGathered) {
  MessageSizes sizes = sizes_of({16e6, 0, 0, 0});
  sizes.expert_gradient_bytes = sizes.expert_parameter_bytes = {8e6};
  const Prepared run(owners_plan(4), cluster_of(4, 0), flat_profile(), sizes);
  const double expected = ring_s(16e6, 1e-6, 100e9) + ring_s(3.0 / 4 * 8e6, 1e-6, 100e9);
  EXPECT_NEAR(run.alone_s(OpKind::unshard), expected, kLastByte);
  const double all_reduce = 2 * ring_s(2 * 3.0 / 4 * 12e6, 1e-6, 100e9);
  EXPECT_NEAR(run.alone_s(OpKind::reduce_grad), all_reduce + 6 * 24e6 / kMemory, kLastByte);
}

// The busiest owner's gradients leave for the host, and as many parameters come back.
TEST(OwnersLoads, OffloadCopiesWhatTheBusiestOwns) {
  Plan plan = owners_plan(4);
  plan.offload = Offload::optimizer;
  Cluster cluster = cluster_of(4, 0);
  cluster.node.host.link = {10e9, 0};
  cluster.node.host.adam_parameters_per_s = 1e9;
  const Prepared run(plan, cluster, flat_profile(), sizes_of({8e6, 4e6, 4e6, 0}));
  EXPECT_DOUBLE_EQ(run.alone_s(OpKind::offload_grad), 8e6 / 10e9);
  EXPECT_DOUBLE_EQ(run.alone_s(OpKind::reload_param), 8e6 / 10e9);
}

// A NIC for each GPU, so that nothing contends; but for each transfer's last byte.
TEST(OwnersLoads, OfFoldedRunsEqualThoseOfUnfoldedOnesInBothEngines) {
  for (const int shard : {0, 4}) {
    const auto end_s = [shard](Fold fold, auto engine) {
      const Prepared run(
          owners_plan(8, shard), cluster_of(4, 4), flat_profile(),
          shard == 0 ? sizes_of({4e6, 4e6, 2e6, 2e6, 1e6, 1e6, 2e6, 0}) : sizes_of({7e6, 5e6, 4e6, 0}), fold);
      const auto end =
          in_child([&] { return std::vector{engine(run.schedule, run.tasks, run.loads).end()}; });
      return end.value_or(std::vector{-1.0}).front();
    };
    const auto by_simgrid = [](const auto&... run) { return simulate(run...); };
    const auto by_longest_path = [](const auto&... run) { return reference(run...); };
    const double folded = end_s(Fold::replicas, by_longest_path);
    ASSERT_GT(folded, 2e-3);
    EXPECT_NEAR(end_s(Fold::none, by_longest_path), folded, 1e-6 * folded) << shard;
    EXPECT_NEAR(end_s(Fold::replicas, by_simgrid), folded, 1e-6 * folded) << shard;
    EXPECT_NEAR(end_s(Fold::none, by_simgrid), folded, 1e-6 * folded) << shard;
  }
}

Experiment internevo(int dp) {
  Experiment experiment = replicas("llama2-7b", dp);
  experiment.plan.framework = Framework::internevo;
  experiment.plan.zero = 1;
  apply_framework(experiment.plan);
  return experiment;
}

CommunicationLine line(const Report& report, const std::string& op) {
  for (const CommunicationLine& line : report.communication)
    if (line.kind == "dp" && line.op == op) return line;
  return {};
}

// Two tables, five matrices in each of 32 layers and 65 norms: with 400 ranks not all own something.
TEST(InternEvo, ReportCountsABroadcastForEachOwner) {
  for (const int dp : {64, 400}) {
    const Iteration run = run_iteration(internevo(dp));
    const double parameters = run.preparation.work.parameters(0);
    const CommunicationLine broadcasts = line(run.report, "broadcast"), sums = line(run.report, "all_reduce");
    EXPECT_EQ(broadcasts.calls, std::min(dp, 2 + 5 * 32 + 65));
    EXPECT_EQ(broadcasts.group_size, dp);
    EXPECT_EQ(broadcasts.bytes_per_rank, 2 * parameters);
    EXPECT_EQ(sums.bytes_per_rank, 2 * parameters);
    EXPECT_EQ(sums.calls, std::ceil(parameters / (512.0 * 1024 * 1024)));
    EXPECT_EQ(run.report.communication.size(), 2U);
  }
}

TEST(InternEvo, ReportOfSeveralGroupsScattersSumsAndBroadcasts) {
  Experiment experiment = internevo(32);
  experiment.plan.zero_shard = 8;
  const Iteration run = run_iteration(experiment);
  const double parameters = run.preparation.work.parameters(0);
  EXPECT_EQ(line(run.report, "reduce_scatter").group_size, 8);
  EXPECT_EQ(line(run.report, "all_reduce").group_size, 4);
  EXPECT_EQ(line(run.report, "all_reduce").bytes_per_rank, 2 * parameters / 8);
  EXPECT_EQ(line(run.report, "broadcast").group_size, 8);
  EXPECT_EQ(line(run.report, "broadcast").calls, 8);
}

// Each rank has all weights and gradients. The busiest owner has the optimizer's copy of the gradient, the
// master weight and the moments of a table, which is more than an even share.
TEST(InternEvo, HoldsTheBusiestOwnersState) {
  const RankMemory memory = run_iteration(internevo(128)).report.memory[0];
  const double owned = 32000 * 4096;
  EXPECT_LT(memory.parameters / 128, owned);
  EXPECT_EQ(memory.parameters_bytes, 2 * memory.parameters);
  EXPECT_DOUBLE_EQ(memory.gradients_bytes, 2 * memory.parameters);
  EXPECT_DOUBLE_EQ(memory.optimizer_bytes, 16 * owned);
}

// Where one table is more than an even share, the optimizer step takes at least as long as that table's.
TEST(InternEvo, StepDoesNotGetShorterThanThatOfTheLargestParameter) {
  const auto step_s = [](int dp) { return prepare(internevo(dp)).prices.times.step[0].optimizer; };
  EXPECT_LT(step_s(8), 0.51 * step_s(4));
  EXPECT_DOUBLE_EQ(step_s(128), step_s(256));
}

TEST(InternEvo, SharesSumToTheStep) {
  const Report report = run_iteration(internevo(64)).report;
  EXPECT_NEAR(report.time.sum(), report.step_time_s, 1e-9 * report.step_time_s);
  EXPECT_GT(report.time.exposed_dp, 0);
  EXPECT_GT(report.time.recompute, 0);
}

}  // namespace
}  // namespace rehearse
