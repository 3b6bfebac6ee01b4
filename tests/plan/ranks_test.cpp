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
