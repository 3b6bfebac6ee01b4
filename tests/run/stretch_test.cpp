// Collectives inside ops feel a fabric that blocks.
#include "run/stretch.h"

#include <gtest/gtest.h>

#include "model/read.h"
#include "run/iteration.h"
#include "traffic.h"

namespace rehearse {
namespace {

constexpr auto kTp = static_cast<std::size_t>(Axis::tp);
constexpr auto kCp = static_cast<std::size_t>(Axis::cp);
constexpr auto kEp = static_cast<std::size_t>(Axis::ep);

// Eight nodes of one GPU and one NIC below leaves of four.
Plan experts_on_every_node() {
  Plan plan;
  plan.dp = plan.ep = 8;
  return plan;
}
Plan contexts_on_every_node() {
  Plan plan;
  plan.cp = 8;
  return plan;
}

TEST(Stretch, OfAllToAllOverTwoLeavesIsHalfItsBytesThroughTheUplinks) {
  // A node sends 7/8 through its NIC, the four of a leaf 4 x 4/8 through uplinks of 4 NICs over the ratio.
  const auto stretch = [](double ratio) {
    return find_stretch(experts_on_every_node(), leafy_cluster(1, 1, 4, ratio), {}).experts[kEp];
  };
  EXPECT_DOUBLE_EQ(stretch(1), 1);
  EXPECT_NEAR(stretch(2), 8.0 / 7, 1e-12);
  EXPECT_NEAR(stretch(7), 4, 1e-12);
}

TEST(Stretch, OfARingIsOneEdgeThroughTheUplinks) {
  EXPECT_DOUBLE_EQ(find_stretch(contexts_on_every_node(), leafy_cluster(1, 1, 4, 2), {}).groups[kCp], 1);
  EXPECT_NEAR(find_stretch(contexts_on_every_node(), leafy_cluster(1, 1, 4, 7), {}).groups[kCp], 7.0 / 4,
              1e-12);
}

TEST(Stretch, OfARingScatteredOverLeavesIsAllOfItsEdges) {
  Conditions scattered;
  scattered.placement = Placement::scattered;
  EXPECT_NEAR(find_stretch(contexts_on_every_node(), leafy_cluster(1, 1, 4, 3), scattered).groups[kCp], 3,
              1e-12);
}

TEST(Stretch, OfEightRailsAtOnceIsThatOfOne) {
  Plan plan = contexts_on_every_node();
  plan.tp = 8;
  const Stretch stretch = find_stretch(plan, leafy_cluster(8, 8, 4, 7), {});
  EXPECT_NEAR(stretch.groups[kCp], 7.0 / 4, 1e-12);
  EXPECT_DOUBLE_EQ(stretch.groups[kTp], 1);  // inside the node
}

TEST(Stretch, OfGroupsBelowOneLeafIsOneUnlessItsUplinksAreNeeded) {
  Plan plan = contexts_on_every_node();
  plan.cp = 4;
  plan.dp = 2;
  EXPECT_DOUBLE_EQ(find_stretch(plan, leafy_cluster(1, 1, 4, 7), {}).groups[kCp], 1);
  EXPECT_GT(find_stretch(plan, leafy_cluster(1, 1, 2, 7), {}).groups[kCp], 1);
}

TEST(Stretch, OfASlowLinkIsFeltByWhoCrossesIt) {
  Conditions slow;
  slow.slow = parse_slow("link=leaf0:0.1");
  EXPECT_NEAR(find_stretch(contexts_on_every_node(), leafy_cluster(1, 1, 4, 1), slow).groups[kCp], 10.0 / 4,
              1e-12);
}

// Mixtral with tensor-parallel experts of a node each on eight nodes.
Prices mixtral_prices(double oversubscription) {
  Experiment experiment;
  experiment.model = read_model("mixtral-8x7b");
  experiment.cluster = read_cluster("dgx-h100");
  experiment.cluster.fabric.rails = false;
  experiment.cluster.fabric.levels = {{"leaf", 1, oversubscription}};
  experiment.profile = read_profile("h100-sxm");
  Plan& plan = experiment.plan;
  plan.tp = plan.etp = plan.ep = plan.dp = 8;
  plan.global_batch = 8;
  plan.sequence_parallel = true;
  return prepare(experiment).prices;
}

TEST(Stretch, LengthensOnlyTheExpertsMessages) {
  const TimeParts free = mixtral_prices(1).times.stages[0].forward;
  const TimeParts blocked = mixtral_prices(4).times.stages[0].forward;
  EXPECT_GT(blocked.ep, 2 * free.ep);
  EXPECT_LT(blocked.ep, 4 * free.ep);  // latencies stay
  EXPECT_DOUBLE_EQ(blocked.compute, free.compute);
  EXPECT_DOUBLE_EQ(blocked.tp, free.tp);
}

}  // namespace
}  // namespace rehearse
