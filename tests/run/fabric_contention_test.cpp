// Traffic that crosses one link shares it, whatever it belongs to.
#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/cluster.h"
#include "traffic.h"

namespace rehearse {
namespace {

// GPU i of node 0 with GPU i of node 1, both ways: rings over two nodes.
std::vector<Message> rings(int count, std::int64_t a = 0, std::int64_t b = 1) {
  std::vector<Message> messages;
  for (int gpu = 0; gpu < count; ++gpu) {
    messages.push_back({{a, gpu}, {b, gpu}});
    messages.push_back({{b, gpu}, {a, gpu}});
  }
  return messages;
}

TEST(SharedNic, EightRingsOfOneGigabyteThroughOneOfFiftyGigabytesASecondTakeEightTimesAsLong) {
  const Cluster cluster = leafy_cluster(8, 1, 4, 1);
  EXPECT_NEAR(last_end(cluster, rings(1)), 0.02, 1e-9);
  EXPECT_NEAR(last_end(cluster, rings(8)), 8 * 0.02, 1e-9);
}

TEST(SharedNic, EightRailsTakeNoLongerThanOne) {
  EXPECT_NEAR(last_end(leafy_cluster(8, 8, 4, 1), rings(8)), 0.02, 1e-9);
}

TEST(SharedNic, FourForEightGpusTakeTwiceAsLong) {
  EXPECT_NEAR(last_end(leafy_cluster(8, 4, 4, 1), rings(8)), 2 * 0.02, 1e-9);
}

TEST(SharedNic, AWrongMappingPutsAllOnOne) {
  Cluster cluster = leafy_cluster(8, 4, 4, 1);
  cluster.node.nic_of_gpu = {0, 0, 0, 0, 0, 0, 3, 3};
  EXPECT_NEAR(last_end(cluster, rings(8)), 6 * 0.02, 1e-9);
}

TEST(SharedNic, APipelineSendAndAGradientRingHalveEachOther) {
  const Cluster cluster = leafy_cluster(8, 8, 4, 1);
  const Message send{{0, 0}, {2, 0}}, ring{{0, 0}, {1, 0}};
  EXPECT_NEAR(last_end(cluster, {send}), 0.02, 1e-9);
  EXPECT_NEAR(last_end(cluster, {send, ring}), 0.04, 1e-9);
}

TEST(SharedNic, BothDirectionsAtOnceDoNotDisturbEachOther) {
  const Cluster cluster = leafy_cluster(8, 8, 4, 1);
  EXPECT_NEAR(last_end(cluster, {{{0, 0}, {1, 0}}, {{2, 0}, {0, 0}}}), 0.02, 1e-9);
}

TEST(Incast, SevenSendersToOneReceiverTakeSevenTimesAsLong) {
  std::vector<Message> messages;
  for (int node = 1; node < 8; ++node) messages.push_back({{node, 0}, {0, 0}});
  EXPECT_NEAR(last_end(leafy_cluster(8, 8, 4, 1), messages), 7 * 0.02, 1e-9);
}

class Oversubscription : public testing::TestWithParam<double> {};

TEST_P(Oversubscription, StretchesWhatAllNodesOfALeafSendToAnother) {
  const Cluster cluster = leafy_cluster(1, 1, 4, GetParam());
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {node + 4, 0}});
  EXPECT_NEAR(last_end(cluster, messages), 0.02 * GetParam(), 1e-9);
}

TEST_P(Oversubscription, DoesNotTouchWhatStaysBelowTheLeaf) {
  const Cluster cluster = leafy_cluster(1, 1, 4, GetParam());
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {(node + 1) % 4, 0}});
  EXPECT_NEAR(last_end(cluster, messages), 0.02, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Ratios, Oversubscription, testing::Values(1, 2, 7));

TEST(TwoJobs, ShareTheUplinksThatEachAloneHasToItself) {
  const Cluster cluster = leafy_cluster(1, 1, 4, 2);
  const std::vector<Message> first = {{{0, 0}, {4, 0}}, {{1, 0}, {5, 0}}};
  const std::vector<Message> second = {{{2, 0}, {6, 0}}, {{3, 0}, {7, 0}}};
  std::vector<Message> both = first;
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_NEAR(last_end(cluster, first), 0.02, 1e-9);
  EXPECT_NEAR(last_end(cluster, second), 0.02, 1e-9);
  EXPECT_NEAR(last_end(cluster, both), 0.04, 1e-9);
}

// Four nodes of a leaf, 100 GB/s each, through uplinks of 4 x 50 / 2 GB/s a rail.
TEST(Rails, AGpuOfTwoNicsSendsThroughTheRailsOfBoth) {
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {node + 4, 0}});
  EXPECT_NEAR(last_end(leafy_cluster(2, 2, 4, 2, true), messages), 2 * 0.02, 1e-9);
  EXPECT_NEAR(last_end(leafy_cluster(2, 4, 4, 2, true), messages), 0.02, 1e-9);
}

// Two GPUs of a node, one rail each, send to rail 1 of the same leaf switches' other nodes.
TEST(Pxn, KeepsAMessageToAnotherRailBelowThatRailsLeaf) {
  const Cluster cluster = leafy_cluster(2, 2, 4, 8, true);
  std::vector<Message> messages;
  for (int node = 0; node < 2; ++node) messages.push_back({{node, 0}, {node + 2, 1}});
  Conditions without;
  without.pxn = false;
  EXPECT_NEAR(last_end(cluster, messages), 0.02, 1e-9);
  EXPECT_NEAR(last_end(cluster, messages, without), 4 * 0.02, 1e-9);  // 2 x 50 GB/s through 200 / 8
}

TEST(NvlinkMesh, AMessageIsAsFastAsTheLinksOfItsPair) {
  const Cluster cluster = read_cluster("dgx-1-v100");
  EXPECT_NEAR(last_end(cluster, {{{0, 0}, {0, 3}}}), 0.02, 1e-9);  // two links of 25 GB/s
  EXPECT_NEAR(last_end(cluster, {{{0, 0}, {0, 1}}}), 0.04, 1e-9);  // one
}

TEST(NvlinkMesh, WhoPassesThroughAnotherGpuSharesItsLinks) {
  const Cluster cluster = read_cluster("dgx-1-v100");
  const Message far{{0, 0}, {0, 7}}, near{{0, 3}, {0, 7}};  // over GPU 4 or 3
  EXPECT_NEAR(last_end(cluster, {far}), 0.02, 1e-9);        // 0 - 4 - 7: two links each
  EXPECT_NEAR(last_end(cluster, {far, {{0, 4}, {0, 7}}}), 0.04, 1e-9);
  EXPECT_NEAR(last_end(cluster, {far, near}), 0.04, 1e-9);  // 3 - 7 alone has one link
}

Cluster dragonfly(bool minimal) {
  Cluster cluster = leafy_cluster(1, 1, 4, 1);
  cluster.fabric.kind = FabricKind::dragonfly;
  cluster.fabric.levels.front().name = "group";
  cluster.fabric.minimal_routing = minimal;
  cluster.max_nodes = 20;  // five groups: four links of 50 GB/s out of each
  return cluster;
}

TEST(Dragonfly, MinimalRoutingSendsAllOfAPairOfGroupsOverItsOneLink) {
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {node + 4, 0}});
  EXPECT_NEAR(last_end(dragonfly(true), messages), 4 * 0.02, 1e-9);
  EXPECT_NEAR(last_end(dragonfly(false), messages), 0.02, 1e-9);
}

TEST(Dragonfly, MessagesToDifferentGroupsTakeDifferentLinks) {
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {4 * (node + 1), 0}});
  EXPECT_NEAR(last_end(dragonfly(true), messages), 0.02, 1e-9);
}

Cluster torus() {
  Cluster cluster = leafy_cluster(1, 1, 4, 1);
  cluster.fabric = {};
  cluster.fabric.kind = FabricKind::torus;
  cluster.fabric.extents = {4, 4};
  cluster.fabric.link_bandwidth = 50e9;
  cluster.max_nodes = 16;
  return cluster;
}

TEST(Torus, NeighboursAllAroundARingDoNotDisturbEachOther) {
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {(node + 1) % 4, 0}});
  EXPECT_NEAR(last_end(torus(), messages), 0.02, 1e-9);
}

TEST(Torus, WhoCrossesTheSameRouterInTheSameDirectionShares) {
  EXPECT_NEAR(last_end(torus(), {{{0, 0}, {2, 0}}, {{1, 0}, {2, 0}}}), 0.04, 1e-9);
  EXPECT_NEAR(last_end(torus(), {{{0, 0}, {5, 0}}, {{3, 0}, {4, 0}}}), 0.02, 1e-9);
}

TEST(Slow, ANicAtHalfItsSpeedTakesTwiceAsLong) {
  Conditions conditions;
  conditions.slow = parse_slow("nic=1.0:0.5");
  EXPECT_NEAR(last_end(leafy_cluster(8, 8, 4, 1), rings(1), conditions), 0.04, 1e-9);
}

TEST(Slow, ANicThatIsDownLeavesItsTrafficToTheNext) {
  Conditions conditions;
  conditions.slow = parse_slow("nic=0.0:0");
  const Cluster cluster = leafy_cluster(2, 2, 4, 1);
  EXPECT_NEAR(last_end(cluster, rings(1), conditions), 0.02, 1e-9);
  EXPECT_NEAR(last_end(cluster, rings(2), conditions), 0.04, 1e-9);
}

TEST(Slow, ANodeWithoutAnyNicLeftIsAnError) {
  Conditions conditions;
  conditions.slow = parse_slow("nic=0.0:0,nic=0.1:0");
  const Cluster cluster = leafy_cluster(2, 2, 4, 1);
  LinkTable table(cluster, conditions);
  EXPECT_THROW(table.message({0, 0}, {1, 0}), InputError);
}

TEST(Slow, UplinksAtAQuarterOfTheirSpeedAreSharedAlthoughTheyWereEnough) {
  Conditions conditions;
  conditions.slow = parse_slow("link=leaf0:0.25");
  const Cluster cluster = leafy_cluster(1, 1, 4, 1);
  std::vector<Message> messages;
  for (int node = 0; node < 4; ++node) messages.push_back({{node, 0}, {node + 4, 0}});
  EXPECT_NEAR(last_end(cluster, messages, conditions), 4 * 0.02, 1e-9);
}

TEST(Slow, UplinksThatAreDownPartTheFabric) {
  Conditions conditions;
  conditions.slow = parse_slow("link=leaf0:0");
  const Cluster cluster = leafy_cluster(1, 1, 4, 1);
  LinkTable table(cluster, conditions);
  EXPECT_THROW(table.message({0, 0}, {4, 0}), InputError);
  EXPECT_NO_THROW(table.message({0, 0}, {1, 0}));
}

}  // namespace
}  // namespace rehearse
