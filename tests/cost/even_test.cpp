// Which layouts put all groups of a kind alike on nodes?
#include "cost/even.h"

#include <gtest/gtest.h>

#include "cost/collectives.h"
#include "machines.h"
#include "plan/ranks.h"

namespace rehearse {
namespace {

Plan degrees(int tp, int cp, int dp, int pp) {
  Plan plan;
  plan.tp = tp;
  plan.cp = cp;
  plan.dp = dp;
  plan.pp = pp;
  return plan;
}

TEST(Even, WhenEveryBlockOfRanksFillsNodesOrAPartOfOne) {
  const Cluster cluster = test::dgx_a100();  // 8 GPUs a node
  EXPECT_TRUE(lies_evenly(degrees(1, 1, 1, 1), cluster));
  EXPECT_TRUE(lies_evenly(degrees(8, 1, 3, 5), cluster));
  EXPECT_TRUE(lies_evenly(degrees(2, 4, 3, 2), cluster));
  EXPECT_TRUE(lies_evenly(degrees(4, 1, 6, 2), cluster));
}

TEST(Even, NotWhenGroupsStraddleNodesHereAndThere) {
  const Cluster cluster = test::dgx_a100();
  EXPECT_FALSE(lies_evenly(degrees(3, 1, 1, 8), cluster));  // ranks 6 to 8
  EXPECT_FALSE(lies_evenly(degrees(4, 1, 3, 2), cluster));  // replicas 0 and 1 of a stage, or 1 and 2
  EXPECT_FALSE(lies_evenly(degrees(1, 3, 1, 8), cluster));
}

TEST(Even, CountsShardsAndExpertsToo) {
  const Cluster cluster = test::dgx_a100();
  Plan plan = degrees(1, 1, 24, 1);
  EXPECT_TRUE(lies_evenly(plan, cluster));
  plan.zero = 1;
  plan.zero_shard = 3;
  EXPECT_FALSE(lies_evenly(plan, cluster));
  plan.zero_shard = 4;
  EXPECT_TRUE(lies_evenly(plan, cluster));
  plan.zero = 0;
  plan.ep = 3;
  EXPECT_FALSE(lies_evenly(plan, cluster));
}

TEST(Even, LooksAtWhoSharesANic) {
  Cluster cluster = test::dgx_a100();
  cluster.node.nics = 2;
  EXPECT_EQ(gpus_of_a_nic(cluster), 4);
  cluster.node.nics = 8;
  EXPECT_EQ(gpus_of_a_nic(cluster), 1);
  cluster.node.nic_of_gpu = {1, 1, 0, 0, 3, 3, 2, 2};
  EXPECT_EQ(gpus_of_a_nic(cluster), 2);
  cluster.node.nic_of_gpu = {0, 0, 0, 1, 1, 2, 2, 2};
  EXPECT_EQ(gpus_of_a_nic(cluster), 0);
  EXPECT_FALSE(lies_evenly(degrees(1, 1, 2, 1), cluster));
}

TEST(Even, MeansThatGroupsHaveOneShape) {
  const Cluster cluster = test::dgx_a100();
  const auto shape_of = [&](const std::vector<int>& ranks) {
    const GroupShape shape = group_shape(cluster, ranks);
    return std::tuple(shape.members, shape.nodes, shape.per_nic);
  };
  int even = 0;
  for (int tp = 1; tp <= 16; ++tp)
    for (int dp = 1; dp <= 12; ++dp) {
      const Plan plan = degrees(tp, 1, dp, 4);
      if (!lies_evenly(plan, cluster)) continue;
      ++even;
      const RankGrid grid(plan);
      for (int rank = 0; rank < grid.size(); ++rank)
        for (const Axis axis : {Axis::tp, Axis::dp, Axis::pp})
          EXPECT_EQ(shape_of(grid.group(rank, axis)), shape_of(grid.group(0, axis)))
              << "tp " << tp << " dp " << dp << " rank " << rank;
    }
  EXPECT_GT(even, 20);
}

}  // namespace
}  // namespace rehearse
