// Collectives inside ops share links with everything else.
#include "run/contended.h"

#include <gtest/gtest.h>

#include "model/read.h"
#include "run/iteration.h"
#include "run/reference.h"
#include "traffic.h"

namespace rehearse {
namespace {

constexpr double kRate = 1e9;  // bytes/s of each link

// Ops of two ranks that wait for nobody, each with one round: kernels, then its transfers.
struct TwoOps {
  Schedule schedule;
  Tasks tasks;
  Loads loads;

  TwoOps() {
    schedule.pp = schedule.stages = 2;
    schedule.microbatches = 1;
    schedule.ranks.resize(2);
    for (int rank = 0; rank < 2; ++rank) {
      schedule.ranks[static_cast<std::size_t>(rank)].add(make_op(OpKind::forward, rank), {});
      loads.inside.paces.push_back({});
    }
    tasks = derive_tasks(schedule, pipeline_plan(2, 1, 1));
    loads.fixed_s = loads.transfer_s = loads.taken = {0, 0};
    loads.first_flow = {0, 0, 0};
    loads.inside.op_of = {0, 1};
    loads.capacity = {kRate, kRate, kRate, kRate};
    loads.ends = {{0}, {1}, {2}, {3}};
  }

  // `kernels_s`, then transfers over the link `out`; `window_s`: kernels that run beside them.
  void op(std::int32_t leader, double kernels_s, double transfers_s, EndId out, double window_s = 0,
          int rounds = 1) {
    ContendedOp op;
    op.leader = leader;
    op.rounds = rounds;
    Transfers& round = op.round[0];
    (window_s > 0 ? round.beside_s : round.exposed_s) = transfers_s / rounds;
    round.window_s = window_s / rounds;
    op.priced_s = op.alone_s = std::max(window_s, transfers_s);
    loads.inside.ops.push_back(op);
    loads.inside.paces[static_cast<std::size_t>(leader)][0] = {{{out, leader + 2}, kRate}};
    loads.fixed_s[static_cast<std::size_t>(leader)] = kernels_s;
  }

  std::vector<double> ends() const {
    const auto ends = in_child([&] {
      const Timeline timeline = simulate(schedule, tasks, loads);
      return std::vector{timeline.ranks[0].spans[0].end, timeline.ranks[1].spans[0].end};
    });
    return ends.value_or(std::vector<double>{-1, -1});
  }
};

TEST(ContendedOps, TwoOpsThatTalkForASecondOnOneLinkTalkForTwo) {
  TwoOps ops;
  ops.op(0, 1, 1, 0);
  ops.op(1, 1, 1, 0);
  EXPECT_NEAR(ops.ends()[0], 3, 1e-9);
  EXPECT_NEAR(ops.ends()[1], 3, 1e-9);
}

TEST(ContendedOps, OnLinksOfTheirOwnTheyTakeWhatTheyArePricedAt) {
  TwoOps ops;
  ops.op(0, 1, 1, 0, 0, 8);
  ops.op(1, 1, 1, 1, 0, 8);
  EXPECT_NEAR(ops.ends()[0], 2, 1e-9);
  EXPECT_NEAR(ops.ends()[1], 2, 1e-9);
}

// The slowest member of a group sets its price. Another member's own link could carry its part in half that
// time.
TEST(ContendedOps, OnWiderLinksTheyTakeNoLessThanTheyArePricedAt) {
  TwoOps ops;
  ops.op(0, 1, 1, 0, 0, 8);
  ops.op(1, 1, 1, 1, 0, 8);
  ops.loads.capacity = {2 * kRate, 2 * kRate, 2 * kRate, 2 * kRate};
  EXPECT_NEAR(ops.ends()[0], 2, 1e-9);
  EXPECT_NEAR(ops.ends()[1], 2, 1e-9);
}

TEST(ContendedOps, WhatAKernelHidesStaysHiddenWhileTheKernelLasts) {
  TwoOps ops;
  ops.op(0, 0, 1, 0, 2);
  ops.op(1, 0, 1, 0, 2);
  EXPECT_NEAR(ops.ends()[0], 2, 1e-9);  // both transfers last as long as the kernels
  TwoOps longer;
  longer.op(0, 0, 1, 0, 1.5);
  longer.op(1, 0, 1, 0, 1.5);
  EXPECT_NEAR(longer.ends()[0], 2, 1e-9);
}

TEST(ContendedOps, TimeLostOnLinksIsHiddenAsLongAsTheGpuWouldWaitForTheHost) {
  TwoOps ops;
  ops.op(0, 2, 1, 0);
  ops.op(1, 1.5, 1, 0);
  ops.loads.waits_s = {1, 0.5};  // kernels of a second each
  EXPECT_NEAR(ops.ends()[0], 3, 1e-9);
  EXPECT_NEAR(ops.ends()[1], 3, 1e-9);
  ops.loads.transfer_s = {2, 2};
  EXPECT_NEAR(ops.loads.alone_s(0), 3, 1e-9);
  EXPECT_NEAR(ops.loads.alone_s(1), 3, 1e-9);
}

TEST(ContendedOps, TimeLostOnLinksIsLaidToTheGroup) {
  TwoOps ops;
  ops.op(0, 1, 1, 0);
  ops.op(1, 1, 1, 0);
  const auto lost =
      in_child([&] { return std::vector{simulate(ops.schedule, ops.tasks, ops.loads).ranks[0].lost[0].tp}; });
  ASSERT_TRUE(lost.has_value());
  EXPECT_NEAR(lost->front(), 1, 1e-9);
}

// Time of a forward with one second of messages along `group`, without contention.
double alone_s(const Plan& plan, const Cluster& cluster, CommGroup group, const Conditions& conditions = {}) {
  const Schedule schedule = complete_schedule(plan, GradientSync{false, false, 1, {1}});
  const Tasks tasks = derive_tasks(schedule, plan);
  Prices prices{even_times(plan, 0)};
  prices.times.stages[0].forward.tp = 1;
  const MessageSizes sizes{0, {0}, 0};
  prices.transfers.resize(1);
  prices.transfers[0].forward[static_cast<std::size_t>(group)] = {1, 0, 0, 1};
  const Loads loads = make_loads(schedule, tasks, plan, cluster, flat_profile(), prices, sizes, conditions);
  return loads.alone_s(tasks.task(0, 0));
}

// Eight nodes of one GPU and one NIC below leaves of four.
Plan experts_on_every_node() {
  Plan plan;
  plan.dp = plan.ep = plan.global_batch = 8;
  return plan;
}
Plan contexts_on_every_node() {
  Plan plan;
  plan.cp = 8;
  return plan;
}

TEST(ContendedOps, AnAllToAllOverTwoLeavesSendsHalfItsBytesThroughTheUplinks) {
  // A node sends 7/8 through its NIC, the four of a leaf 4 x 4/8 through uplinks of 4 NICs over the ratio.
  const auto stretch = [](double ratio) {
    return alone_s(experts_on_every_node(), leafy_cluster(1, 1, 4, ratio), CommGroup::expert);
  };
  EXPECT_DOUBLE_EQ(stretch(1), 1);
  EXPECT_NEAR(stretch(2), 8.0 / 7, 1e-9);
  EXPECT_NEAR(stretch(7), 4, 1e-9);
}

TEST(ContendedOps, ARingCrossesTheUplinksOnce) {
  const auto stretch = [](double ratio, const Conditions& conditions = {}) {
    return alone_s(contexts_on_every_node(), leafy_cluster(1, 1, 4, ratio), CommGroup::context, conditions);
  };
  EXPECT_DOUBLE_EQ(stretch(2), 1);
  EXPECT_NEAR(stretch(7), 7.0 / 4, 1e-9);
  Conditions scattered;
  scattered.placement = Placement::scattered;
  EXPECT_NEAR(stretch(3, scattered), 3, 1e-9);  // every edge of it
  Conditions slow;
  slow.slow = parse_slow("link=leaf0:0.1");
  EXPECT_NEAR(stretch(1, slow), 10.0 / 4, 1e-9);
}

TEST(ContendedOps, EightTensorParallelGroupsThroughOneNicTakeEightTimesAsLong) {
  Plan plan;
  plan.tp = 2;
  plan.dp = plan.global_batch = 8;
  plan.order = {Axis::dp, Axis::cp, Axis::ep, Axis::tp, Axis::pp};  // tp from node to node
  EXPECT_NEAR(alone_s(plan, small_cluster(8, 1), CommGroup::tensor), 8, 1e-9);
  EXPECT_NEAR(alone_s(plan, small_cluster(8, 8), CommGroup::tensor), 1, 1e-9);
}

TEST(ContendedOps, ASlowNvlinkSlowsTheTensorParallelismOfItsGroup) {
  Plan plan;
  plan.tp = 8;
  Conditions slow;
  slow.slow = parse_slow("nvlink=0.3:0.5");
  EXPECT_NEAR(alone_s(plan, small_cluster(8, 8), CommGroup::tensor, slow), 2, 1e-9);
}

// Mixtral with experts over eight nodes; gradients are reduced meanwhile.
Experiment mixtral(bool overlap) {
  Experiment experiment;
  experiment.model = read_model("mixtral-8x7b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile("h100-sxm");
  Plan& plan = experiment.plan;
  plan.ep = 8;
  plan.tp = plan.etp = 8;
  plan.dp = 16;
  plan.global_batch = 64;
  plan.sequence_parallel = true;
  plan.overlap_grad_reduce = overlap;
  return experiment;
}

TEST(ContendedOps, WithoutOthersOnTheLinksBothEnginesAgree) {
  Experiment experiment = mixtral(false);
  experiment.engine = Engine::reference;
  const double alone_s = run_iteration(experiment).report.step_time_s;
  experiment.engine = Engine::simgrid;
  const auto shared_s = in_child([&] { return std::vector{run_iteration(experiment).report.step_time_s}; });
  ASSERT_TRUE(shared_s.has_value());
  EXPECT_NEAR(shared_s->front(), alone_s, 1e-6 * alone_s);
}

TEST(ContendedOps, GradientsReducedMeanwhileLengthenTheExpertsMessages) {
  Experiment experiment = mixtral(true);
  experiment.engine = Engine::reference;
  const double alone_s = run_iteration(experiment).report.step_time_s;
  experiment.engine = Engine::simgrid;
  const auto simulated = in_child([&] {
    const Report report = run_iteration(experiment).report;
    return std::vector{report.step_time_s, report.time.sum(), report.time.exposed_ep};
  });
  ASSERT_TRUE(simulated.has_value());
  EXPECT_GT((*simulated)[0], 1.001 * alone_s);
  EXPECT_NEAR((*simulated)[1], (*simulated)[0], 1e-9 * alone_s);
}

}  // namespace
}  // namespace rehearse
