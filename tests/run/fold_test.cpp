// Simulating identical replicas once does not change the result.
#include <gtest/gtest.h>

#include "cases.h"
#include "in_child.h"
#include "run/reference.h"
#include "run/simulate.h"

namespace rehearse {
namespace {

struct Shape {
  const char* name;
  int tp, dp, pp, vpp, gpus, nics;
  bool overlap;
  int cp = 1, ep = 1;
};

class Folding : public ::testing::TestWithParam<Shape> {};

double step_time(const Plan& plan, const Cluster& cluster, Fold fold) {
  GradientSync sync{plan.overlap_grad_reduce, true, plan.dp * plan.cp,
                    std::vector<int>(static_cast<std::size_t>(plan.stages()), 2)};
  const Schedule schedule = complete_schedule(plan, sync);
  const Tasks tasks = derive_tasks(schedule, plan, {fold, false, false});
  const auto stages = static_cast<std::size_t>(plan.stages());
  MessageSizes sizes{20e6, std::vector<double>(stages, 300e6), 50e6};
  if (plan.ep > 1) sizes.expert_gradient_bytes.assign(stages, 200e6);
  Prices prices{even_times(plan, 2e-3)};
  StageTransfers inside;
  inside.forward[static_cast<std::size_t>(CommGroup::tensor)] = {1e-3, 0, 0, 4};
  inside.backward_input[static_cast<std::size_t>(CommGroup::expert)] = {2e-3, 0, 0, 1};
  prices.transfers.assign(stages, inside);
  for (StageTimes& stage : prices.times.stages) {
    stage.forward.tp = plan.tp > 1 ? 1e-3 : 0;
    stage.backward_input.ep = plan.ep > 1 ? 2e-3 : 0;
  }
  const Loads loads = make_loads(schedule, tasks, plan, cluster, flat_profile(), prices, sizes);
  const auto end = in_child([&] { return std::vector<double>{simulate(schedule, tasks, loads).end()}; });
  return end.has_value() ? end->front() : -1;
}

TEST_P(Folding, GivesTheStepTimeOfTheUnfoldedRun) {
  const Shape& shape = GetParam();
  Plan plan = pipeline_plan(shape.pp, shape.vpp, 2 * shape.pp * shape.dp);
  plan.tp = shape.tp;
  plan.dp = shape.dp;
  plan.cp = shape.cp;
  plan.ep = shape.ep;
  plan.overlap_grad_reduce = shape.overlap;
  const Cluster cluster = small_cluster(shape.gpus, shape.nics);
  const double folded = step_time(plan, cluster, Fold::replicas);
  const double unfolded = step_time(plan, cluster, Fold::none);
  ASSERT_GT(folded, 0);
  EXPECT_NEAR(folded, unfolded, 1e-6 * unfolded);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Folding,
                         ::testing::Values(Shape{"OneNicForEachGpu", 4, 2, 4, 1, 4, 4, true},
                                           Shape{"OneNicForFourGpus", 4, 2, 4, 1, 4, 1, true},
                                           Shape{"TwoReplicasInANode", 2, 4, 4, 1, 4, 2, false},
                                           Shape{"Interleaved", 4, 2, 4, 2, 4, 4, true},
                                           Shape{"AllInOneNode", 2, 2, 2, 1, 8, 0, false},
                                           Shape{"TensorParallelOverTwoNodes", 8, 2, 2, 1, 4, 4, true},
                                           Shape{"ExpertsOverTwoNodes", 1, 8, 2, 1, 4, 2, true, 1, 8},
                                           Shape{"ContextParallel", 1, 2, 4, 1, 4, 4, true, 2},
                                           Shape{"ExpertsInANode", 1, 8, 2, 1, 4, 4, true, 1, 4}),
                         [](const auto& shape) { return shape.param.name; });

}  // namespace
}  // namespace rehearse
