#include "plan/ranks.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

namespace rehearse {
namespace {

TEST(Ranks, TensorParallelPeersAreNeighboursAndPipelinePeersAreFarthest) {
  Plan plan;
  plan.tp = 2;
  plan.dp = 3;
  plan.pp = 4;
  const RankGrid grid(plan);
  EXPECT_EQ(grid.size(), 24);
  EXPECT_EQ(grid.group(0, Axis::tp), (std::vector{0, 1}));
  EXPECT_EQ(grid.group(3, Axis::dp), (std::vector{1, 3, 5}));
  EXPECT_EQ(grid.group(0, Axis::pp), (std::vector{0, 6, 12, 18}));
}

TEST(Ranks, OrderDecidesWhichAxisVariesFastest) {
  Plan plan;
  plan.tp = 2;
  plan.pp = 4;
  plan.order = {Axis::pp, Axis::tp, Axis::cp, Axis::ep, Axis::dp};
  EXPECT_EQ(RankGrid(plan).group(0, Axis::pp), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(RankGrid(plan).group(0, Axis::tp), (std::vector{0, 4}));
}

// Four GPUs for each expert's copy: tp 2 x dp 8 seen as etp 1 x ep 4 x four copies.
TEST(Ranks, OfExpertsAreCarvedOutOfTensorAndDataParallelRanks) {
  Plan plan;
  plan.tp = 2;
  plan.dp = 8;
  plan.ep = 4;
  plan.pp = 2;
  const RankGrid experts = RankGrid::of_experts(plan);
  EXPECT_EQ(experts.size(), RankGrid(plan).size());
  EXPECT_EQ(experts.group(5, Axis::ep), (std::vector{4, 5, 6, 7}));
  EXPECT_EQ(experts.group(5, Axis::dp), (std::vector{1, 5, 9, 13}));
  EXPECT_EQ(experts.group(5, Axis::pp), RankGrid(plan).group(5, Axis::pp));
}

// Megatron core 0.9: the ranks of an expert are tp x cp apart, its replicas along the remaining dimension.
TEST(Ranks, OfExpertsWereCarvedOutOfDataParallelRanksAlone) {
  Plan plan;
  plan.tp = plan.etp = 4;
  plan.cp = 2;
  plan.dp = 4;
  plan.ep = 2;
  EXPECT_EQ(RankGrid::of_experts(plan).group(1, Axis::ep), (std::vector{1, 5}));
  EXPECT_EQ(RankGrid::of_experts(plan).replicas(1), (std::vector{1, 9, 17, 25}));
  plan.core_release = 9;
  EXPECT_EQ(RankGrid::of_experts(plan).group(1, Axis::ep), (std::vector{1, 9}));
  EXPECT_EQ(RankGrid::of_experts(plan).replicas(1), (std::vector{1, 5, 17, 21}));
  plan.core_release = 10;
  EXPECT_EQ(RankGrid::of_experts(plan).group(1, Axis::ep), (std::vector{1, 5}));
}

TEST(Ranks, ThatHoldTheSameParametersDifferAlongDataAndContext) {
  Plan plan;
  plan.tp = 2;
  plan.cp = 2;
  plan.dp = 2;
  EXPECT_EQ(RankGrid(plan).replicas(3), (std::vector{1, 3, 5, 7}));
}

RC_GTEST_PROP(Ranks, CoordinatesAndRanksAreInverse, ()) {
  Plan plan;
  plan.tp = *rc::gen::inRange(1, 9);
  plan.dp = *rc::gen::inRange(1, 9);
  plan.pp = *rc::gen::inRange(1, 9);
  std::shuffle(plan.order.begin(), plan.order.end(), std::mt19937(*rc::gen::arbitrary<std::uint32_t>()));
  const RankGrid grid(plan);
  RC_ASSERT(grid.size() == plan.gpus());
  const int rank = *rc::gen::inRange(0, grid.size());
  RC_ASSERT(grid.rank(grid.coordinates(rank)) == rank);
  for (const Axis axis : plan.order) {
    const std::vector<int> group = grid.group(rank, axis);
    RC_ASSERT(std::find(group.begin(), group.end(), rank) != group.end());
    for (const int member : group) RC_ASSERT(grid.group(member, axis) == group);
  }
}

}  // namespace
}  // namespace rehearse
