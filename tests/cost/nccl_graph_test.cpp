// The channels that NCCL logs and hardware tables show.
#include "cost/nccl/graph.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cost/nccl/read_model.h"
#include "machines.h"

namespace rehearse::nccl {
namespace {

const Constants& constants() {
  static const Model model = read_model(kDefaultModel);
  return model.constants;
}

Graph graph(const std::string& name, int nodes, int members_of_a_node) {
  static std::map<std::string, Cluster> clusters;
  const Cluster& cluster = clusters.try_emplace(name, read_cluster(name)).first->second;
  return graph_of(constants(), cluster,
                  group_shape(cluster, test::ranks_on(cluster, nodes, members_of_a_node)));
}

struct Node {
  const char* cluster;
  int gpus;
  double channels, rate;
};

// 8xA100 12 x 20, 8xH100 12 x 30, 8xB200 16 x 45 GB/s (NCCL logs); V100 6 x 20 on NVSwitch and in the mesh.
TEST(NcclGraph, OfAnNvswitchNodeHasTheChannelsOfNcclsLogs) {
  for (const Node& node :
       {Node{"dgx-a100-80gb", 8, 12, 240e9}, Node{"dgx-h100", 8, 12, 360e9}, Node{"dgx-b200", 8, 16, 720e9},
        Node{"dgx-2", 16, 6, 120e9}, Node{"abci-v100", 4, 6, 120e9}}) {
    const Graph found = graph(node.cluster, 1, node.gpus);
    EXPECT_DOUBLE_EQ(found.channels, node.channels) << node.cluster;
    EXPECT_NEAR(found.bus_rate, node.rate, 1) << node.cluster;
  }
}

// 24 blocks beside a GEMM on 8xH100 (NVIDIA developer forum, 337991); 16 on a DGX A100 with 8 NICs
// (S. Jeaugey, NVIDIA/nccl#689).
TEST(NcclGraph, LaunchesTheBlocksThatWereSeen) {
  EXPECT_DOUBLE_EQ(blocks(graph("dgx-h100", 1, 8)), 24);
  EXPECT_DOUBLE_EQ(blocks(graph("dgx-a100-80gb", 4, 8)), 16);
}

TEST(NcclGraph, AcrossNodesHasOneChannelForEachNicOfTheGroup) {
  EXPECT_NEAR(graph("dgx-h100", 4, 8).bus_rate, 8 * 45e9, 1);  // 8 x 48 would not fit on the 18 NVLinks
  EXPECT_NEAR(graph("dgx-a100-80gb", 4, 8).bus_rate, 8 * 24e9, 1);
  EXPECT_NEAR(graph("dgx-h100", 2, 1).bus_rate, 48e9, 1);
  EXPECT_NEAR(graph("p4d.24xlarge", 2, 8).bus_rate, 4 * 12e9, 1);  // four NICs for eight GPUs
}

Graph changed(const std::string& name, const GroupShape& group, double link_times, double nic_rate) {
  Cluster cluster = read_cluster(name);
  cluster.node.gpu_link.bandwidth *= link_times;
  if (nic_rate > 0) cluster.node.nic.bandwidth = nic_rate;
  return graph_of(constants(), cluster, group);
}

// By hand from search.cc: one channel of 48 GB/s, or four, is split; a NIC of 35 GB/s carries two of 17.5.
TEST(NcclGraph, AcrossNodesSplitsFastChannelsAndSharesNics) {
  const Graph one = changed("dgx-h100", {8, 8, 1}, 1, 0), four = changed("dgx-h100", {32, 4, 2}, 1, 0);
  EXPECT_EQ(one.channels, 2);
  EXPECT_NEAR(one.bus_rate, 48e9, 1);
  EXPECT_EQ(one.ring_nics, 1);
  EXPECT_EQ(four.channels, 8);
  EXPECT_NEAR(four.bus_rate, 4 * 48e9, 1);
  EXPECT_EQ(four.ring_nics, 4);
  const Graph shared = changed("dgx-h100", {8, 8, 1}, 1, 35e9);
  EXPECT_EQ(shared.channels, 2);
  EXPECT_NEAR(shared.bus_rate, 35e9, 1);
  EXPECT_EQ(shared.ring_nics, 1);
}

// 18 NVLinks of 40.1 GB/s, 2.1 times as fast, carry 25 channels of 60 GB/s. Split, they would be 32 of 30; 32 of 45 fit.
TEST(NcclGraph, RaisesSplitChannelsToTheGreatestSpeedThatFits) {
  const Graph wide = changed("dgx-b200", {8, 1, 1}, 2.1, 0);
  EXPECT_EQ(wide.channels, 32);
  EXPECT_NEAR(wide.bus_rate, 32 * 45e9, 1);
}

// A quarter of the NVLinks feeds one NIC of 48 GB/s, or two of 45.
TEST(NcclGraph, LeavesNicsIdleThatTheLinksCannotFeed) {
  const Graph narrow = changed("dgx-h100", {32, 4, 1}, 0.25, 0);
  EXPECT_EQ(narrow.ring_nics, 2);
  EXPECT_NEAR(narrow.bus_rate, 2 * 45e9, 1);
}

// The hybrid cube mesh lets 2 and 3 GPUs use 1 and 2 of a GPU's 6 links, 8 all of them.
TEST(NcclGraph, OfAMeshUsesTheLinksBetweenItsMembersOnly) {
  const double all = graph("dgx-1-v100", 1, 8).link_rate;
  EXPECT_NEAR(all, 120e9, 1);
  EXPECT_NEAR(graph("dgx-1-v100", 1, 2).link_rate, all / 6, 1);
  EXPECT_NEAR(graph("dgx-1-v100", 1, 3).link_rate, all / 3, 1);
  EXPECT_NEAR(graph("mi300x-8", 1, 2).link_rate, graph("mi300x-8", 1, 8).link_rate / 7, 1);
}

TEST(NcclGraph, OfABridgedPairTakesTheBridgeAndOfFourGpusPcie) {
  EXPECT_EQ(graph("a100-pcie-nvlink-pairs", 1, 2).wire, Wire::nvlink);
  EXPECT_EQ(graph("a100-pcie-nvlink-pairs", 1, 4).wire, Wire::pcie);
  EXPECT_GT(graph("a100-pcie-nvlink-pairs", 1, 2).link_rate,
            9 * graph("a100-pcie-nvlink-pairs", 1, 4).link_rate);
}

TEST(NcclGraph, ReducesInTheSwitchesFromHopperOn) {
  EXPECT_NEAR(graph("dgx-h100", 1, 8).head_rate, 40e9, 1);
  EXPECT_NEAR(graph("dgx-b200", 1, 8).head_rate, 90e9, 1);
  EXPECT_EQ(graph("mi300x-8", 1, 8).head_rate, 0);
}

TEST(NcclGraph, KeepsLl128OffPcieAndPlainEthernet) {
  EXPECT_TRUE(graph("dgx-h100", 2, 8).ll128);
  EXPECT_FALSE(graph("rtx5090-pcie5", 1, 4).ll128);
  EXPECT_FALSE(graph("p3.16xlarge", 2, 8).ll128);
}

TEST(NcclGraph, AcrossNodesWithoutNicsIsRefused) {
  Cluster cluster = test::dgx_h100();
  cluster.node.nics = 0;
  EXPECT_THROW(graph_of(constants(), cluster, {2, 2, 1}), InputError);
}

}  // namespace
}  // namespace rehearse::nccl
