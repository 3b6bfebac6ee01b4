// Two jobs on one fabric share its links.
#include "run/concurrent_jobs.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/read.h"
#include "traffic.h"

namespace rehearse {
namespace {

// Data parallelism over `nodes` DGX H100, below leaves of two nodes with half the uplinks that they would
// need.
Experiment job(int nodes, Placement placement) {
  Experiment experiment;
  experiment.model = read_model("llama3-8b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.cluster.fabric.levels = {{"leaf", 2, 2}};
  experiment.cluster.fabric.rails = false;
  experiment.cluster.max_nodes = 8;
  experiment.profile = read_profile("h100-sxm");
  experiment.plan.tp = 8;
  experiment.plan.dp = nodes;
  experiment.plan.global_batch = nodes;
  experiment.plan.overlap_grad_reduce = false;
  experiment.fold = Fold::none;
  experiment.conditions.placement = placement;
  return experiment;
}

// Own step time, and the mean of the other job's.
std::vector<double> beside(const Experiment& own, const Experiment& other) {
  const auto times = in_child([&] {
    const ConcurrentRun both = run_concurrently(own, other);
    return std::vector{both.own.report.step_time_s, both.other_step_times_s.front()};
  });
  return times.value_or(std::vector<double>{-1, -1});
}

double alone(Experiment experiment, int nodes_after) {
  experiment.conditions.nodes_after = nodes_after;
  const auto time = in_child([&] { return std::vector{run_iteration(experiment).report.step_time_s}; });
  return time.has_value() ? time->front() : -1;
}

TEST(Neighbours, ThatMeetOnNoLinkDoNotFeelEachOther) {
  const Experiment own = job(4, Placement::compact);
  const double alone_s = alone(own, 4);
  const std::vector<double> both = beside(own, own);
  EXPECT_NEAR(both[0], alone_s, 1e-9 * alone_s);
  EXPECT_NEAR(both[1], alone_s, 1e-9 * alone_s);
}

TEST(Neighbours, DealtOverTheSameLeavesWaitForEachOther) {
  const Experiment own = job(4, Placement::scattered);
  const double alone_s = alone(own, 4);
  const std::vector<double> both = beside(own, own);
  EXPECT_GT(both[0], 1.01 * alone_s);
  EXPECT_NEAR(both[1], both[0], 1e-6 * alone_s);  // two equal jobs share evenly
}

TEST(Neighbours, AQuickJobRepeatsItsStepUntilTheSlowOneHasEnded) {
  Experiment own = job(4, Placement::compact), other = job(2, Placement::compact);
  own.plan.global_batch = 16;
  const auto steps = in_child([&] {
    return std::vector{static_cast<double>(run_concurrently(own, other).other_step_times_s.size())};
  });
  ASSERT_TRUE(steps.has_value());
  EXPECT_GE(steps->front(), 2);
}

TEST(Neighbours, NeedRoomAndOneCluster) {
  const Experiment own = job(4, Placement::compact);
  EXPECT_THROW(run_concurrently(own, job(5, Placement::compact)), InputError);
  Experiment elsewhere = own;
  elsewhere.cluster.node.nic.bandwidth /= 2;
  EXPECT_THROW(run_concurrently(own, elsewhere), InputError);
  Experiment varied = own;
  varied.conditions.jitter.compute = 0.1;
  EXPECT_THROW(run_concurrently(own, varied), InputError);
}

}  // namespace
}  // namespace rehearse
