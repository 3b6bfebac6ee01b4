// Kernels lose the share that concurrent collectives take, and no more.
#include "run/slowdown.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cases.h"
#include "model/read.h"

namespace rehearse {
namespace {

constexpr double kTaken = 0.25;

struct Seconds {
  double forward, backward, reduction;
};

struct Slowed {
  double forward = 0, backward = 0;
};

// One rank: F, then a reduction beside B.
Slowed slowed(const Seconds& alone, double taken, double kernels = 1, double waits_s = 0) {
  Schedule schedule{1, 1, 1, {RankOps()}};
  RankOps& ops = schedule.ranks[0];
  const std::int32_t forward = ops.add(make_op(OpKind::forward, 0));
  ops.add(make_op(OpKind::reduce_grad, 0), {forward});
  ops.add(make_op(OpKind::backward, 0), {forward});
  const Tasks tasks = derive_tasks(schedule, Plan());
  Loads loads = fixed_loads(schedule, tasks, [&](const Op& op) {
    if (op.kind == OpKind::reduce_grad) return alone.reduction;
    return op.kind == OpKind::forward ? alone.forward : alone.backward;
  });
  loads.taken[tasks.task(0, 1)] = taken;
  OpTimes times;
  times.stages.resize(1);
  times.stages[0].forward.compute = alone.forward;
  times.stages[0].backward_input.compute = kernels * alone.backward;
  times.stages[0].backward_input.tp = (1 - kernels) * alone.backward;
  times.stages[0].backward_input.waits = waits_s;
  loads.waits_s = {0, 0, 0};
  loads.waits_s[tasks.task(0, 2)] = waits_s;
  delay(delays_beside_collectives(schedule, tasks, times, loads), tasks, loads);
  EXPECT_EQ(loads.fixed_s[tasks.task(0, 1)], alone.reduction);
  return {loads.fixed_s[tasks.task(0, 0)], loads.fixed_s[tasks.task(0, 2)]};
}

TEST(Slowdown, AKernelThatOutlastsTheCollectiveLosesTheShareOfItsTime) {
  const Slowed times = slowed({1, 4, 2}, kTaken);
  EXPECT_DOUBLE_EQ(times.backward, 4 + kTaken * 2);
}

TEST(Slowdown, AKernelBesideACollectiveAllAlongRunsAtTheRestOfTheRate) {
  EXPECT_DOUBLE_EQ(slowed({1, 1, 9}, kTaken).backward, 1 / (1 - kTaken));
}

TEST(Slowdown, CollectivesOfTheOpItselfGoOnBesideAnother) {
  EXPECT_DOUBLE_EQ(slowed({1, 4, 9}, kTaken, 0.5).backward, 2 + 2 / (1 - kTaken));
  // Kernels get 1 / (1 + 1 - taken) of the two seconds of the reduction, at 1 - taken of their rate.
  const double kernels_s = 2 / (2 - kTaken);
  EXPECT_DOUBLE_EQ(slowed({1, 4, 2}, kTaken, 0.5).backward, 4 + kTaken * kernels_s);
}

TEST(Slowdown, IsHiddenAsLongAsTheGpuWouldWaitForTheHost) {
  EXPECT_DOUBLE_EQ(slowed({1, 4, 2}, kTaken, 1, 1).backward, 4);
  const double kernels = 3.9 / 4, rest = 1 - kTaken;
  const double lost_s = 2 * (1 - rest / (rest + kernels * kTaken));
  EXPECT_DOUBLE_EQ(slowed({1, 4, 2}, kTaken, 1, 0.1).backward, 4 + lost_s - 0.1);
  Loads loads;
  loads.fixed_s = {5};
  loads.waits_s = {2};
  loads.slow(0, 1);
  EXPECT_EQ(loads.fixed_s[0], 5);
  loads.slow(0, 3);
  EXPECT_EQ(loads.fixed_s[0], 7);
}

TEST(Slowdown, AFasterKernelNeverEndsLater) {
  double before = INFINITY;
  for (double kernel = 4; kernel > 0.1; kernel *= 0.95) {
    const double now = slowed({1, kernel, 2}, kTaken).backward;
    EXPECT_LT(now, before);
    before = now;
  }
}

TEST(Slowdown, WhatRanBeforeTheCollectiveLosesNothing) {
  EXPECT_DOUBLE_EQ(slowed({1, 4, 2}, kTaken).forward, 1);
}

TEST(Slowdown, CollectivesThatTakeNothingSlowNothing) {
  EXPECT_DOUBLE_EQ(slowed({1, 4, 2}, 0).backward, 4);
}

// NCCL's 8 channels, doubled, of the H100's 132 multiprocessors.
TEST(Slowdown, GradientsReducedBesideTheBackwardPassSlowItByTheirChannels) {
  Experiment experiment;
  experiment.model = read_model("llama3-8b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile("h100-sxm");
  experiment.engine = Engine::reference;
  Plan& plan = experiment.plan;
  plan.tp = 4;
  plan.dp = 16;
  plan.global_batch = 16;
  plan.seq = 4096;
  plan.overlap_grad_reduce = true;
  const double slow = run_iteration(experiment).report.step_time_s;
  experiment.cluster.gpu.multiprocessors = 0;
  const Iteration free = run_iteration(experiment);
  EXPECT_GT(slow, free.report.step_time_s);
  EXPECT_LT(slow, free.report.step_time_s / (1 - 16.0 / 132));
}

}  // namespace
}  // namespace rehearse
