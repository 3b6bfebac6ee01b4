// Routes, bisection and oversubscription of fabrics, against closed forms and against each other.
#include "cluster/fabric.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "cluster/graph.h"
#include "cluster/route.h"
#include "cluster_file.h"

namespace rehearse {
namespace {

using testing::ElementsAre;

Cluster plain(int nics, int max_nodes) {
  Json json = small_cluster();  // nodes of 4 GPUs, NICs of 25 GB/s
  json["node"]["nics"]["count"] = nics;
  json["max_nodes"] = max_nodes;
  return read_cluster(write_cluster(json.dump()));
}

Cluster tree(double oversubscription, bool rails = false) {
  Cluster cluster = plain(4, 64);
  cluster.fabric.kind = FabricKind::fat_tree;
  cluster.fabric.levels = {{"leaf", 4, oversubscription}, {"pod", 16, 1}};
  cluster.fabric.rails = rails;
  return cluster;
}

Cluster torus(std::vector<int> extents) {
  int nodes = 1;
  for (const int extent : extents) nodes *= extent;
  Cluster cluster = plain(1, nodes);
  cluster.fabric.kind = FabricKind::torus;
  cluster.fabric.extents = std::move(extents);
  cluster.fabric.link_bandwidth = 10e9;
  return cluster;
}

std::vector<std::string> names(const std::vector<FabricLink>& links) {
  std::vector<std::string> all;
  for (const FabricLink& link : links) all.push_back(link.name + (link.up ? " up" : " down"));
  return all;
}

TEST(FatTree, RoutesUpToTheLowestSwitchAboveBothAndDown) {
  const Cluster cluster = tree(1);
  EXPECT_TRUE(fabric_route(cluster, {0, 0}, {3, 0}).empty());
  EXPECT_THAT(names(fabric_route(cluster, {0, 0}, {4, 0})), ElementsAre("leaf0 up", "leaf1 down"));
  EXPECT_THAT(names(fabric_route(cluster, {0, 0}, {17, 0})),
              ElementsAre("leaf0 up", "pod0 up", "pod1 down", "leaf4 down"));
}

TEST(FatTree, RailsMeetOnlyAboveTheirLeaves) {
  const Cluster cluster = tree(1, true);
  EXPECT_TRUE(fabric_route(cluster, {0, 2}, {3, 2}).empty());
  EXPECT_THAT(names(fabric_route(cluster, {0, 1}, {3, 2})),
              ElementsAre("leaf0.rail1 up", "leaf0.rail2 down"));
}

TEST(FatTree, UplinksCarryWhatEntersOverTheOversubscriptionOfAllLevelsBelow) {
  EXPECT_DOUBLE_EQ(uplink_bandwidth(tree(2), 0), 4 * 4 * 25e9 / 2);
  EXPECT_DOUBLE_EQ(uplink_bandwidth(tree(2), 1), 16 * 4 * 25e9 / 2);
  EXPECT_DOUBLE_EQ(uplink_bandwidth(tree(2, true), 0), 4 * 25e9 / 2);
}

TEST(FatTree, OnlyOversubscribedLevelsAreShared) {
  EXPECT_FALSE(has_shared_links(tree(1).fabric));
  EXPECT_TRUE(has_shared_links(tree(2).fabric));
  for (const FabricLink& link : fabric_route(tree(2), {0, 0}, {17, 0}))
    EXPECT_EQ(link.shared, link.level == 0);
}

TEST(Torus, RoutesDimensionByDimensionTheShorterWay) {
  const Cluster cluster = torus({4, 4});
  EXPECT_THAT(names(fabric_route(cluster, {0, 0}, {6, 0})),
              ElementsAre("router0.x+ up", "router1.x+ up", "router2.y+ up"));
  EXPECT_THAT(names(fabric_route(cluster, {0, 0}, {3, 0})), ElementsAre("router0.x- up"));
}

TEST(Bisection, OfANonBlockingFabricIsWhatTheNicsOfHalfTheNodesSend) {
  EXPECT_NEAR(bisection_bandwidth(tree(1), 256), 32 * 4 * 25e9, 1);
  EXPECT_NEAR(bisection_bandwidth(plain(2, 64), 64), 8 * 2 * 25e9, 1);
}

TEST(Bisection, HalvesWithTwoToOne) {
  EXPECT_NEAR(bisection_bandwidth(tree(2), 256), 32 * 4 * 25e9 / 2, 1);
}

TEST(Bisection, OfATorusIsTwoCutsThroughItsLastDimension) {
  EXPECT_NEAR(bisection_bandwidth(torus({4, 4}), 64), 2 * 4 * 10e9, 1);
  EXPECT_NEAR(bisection_bandwidth(torus({2, 3, 4}), 96), 2 * 6 * 10e9, 1);
}

TEST(Bisection, OfOneNodeIsThatOfItsSwitchOrMesh) {
  EXPECT_NEAR(bisection_bandwidth(read_cluster("dgx-h100"), 8), 4 * 450e9, 1);
  EXPECT_NEAR(bisection_bandwidth(read_cluster("polaris"), 4), 4 * 100e9, 1);  // four pairs are cut
  EXPECT_NEAR(bisection_bandwidth(read_cluster("p3.16xlarge"), 8), 150e9,
              1);  // 2 + 2 + 1 + 1 links of 25 GB/s
}

// Against the maximum flow through the graph of every GPU.
TEST(Bisection, OfTheQuotientIsThatOfTheWholeGraph) {
  const auto whole = [](const Cluster& cluster, std::int64_t gpus) {
    const std::int64_t per_node = cluster.node.gpus, nodes = (gpus + per_node - 1) / per_node;
    return bisection_of(make_graph(cluster, nodes), nodes / 2 * per_node, gpus);
  };
  std::vector<Cluster> clusters = {tree(1), tree(2), tree(2, true), tree(3), plain(2, 64)};
  for (const std::string& name : cluster_names()) clusters.push_back(read_cluster(name));
  for (Cluster cluster : clusters) {
    if (cluster.fabric.kind == FabricKind::torus) continue;
    const std::int64_t per_node = cluster.node.gpus;
    for (const std::int64_t gpus :
         {2 * per_node, 3 * per_node, 7 * per_node - 1, 24 * per_node, 45 * per_node + 1}) {
      if (gpus > 512 || (cluster.max_nodes > 0 && gpus > cluster.max_nodes * per_node)) continue;
      const double expected = whole(cluster, gpus);
      EXPECT_NEAR(bisection_bandwidth(cluster, gpus), expected, 1e-9 * expected)
          << cluster.name << " " << gpus;
    }
  }
}

TEST(Bisection, OfAMillionGpusIsWhatHalfOfThemSend) {
  Cluster cluster = read_cluster("dgx-h100");
  cluster.max_nodes = 0;
  cluster.fabric.levels.clear();
  EXPECT_NEAR(bisection_bandwidth(cluster, 1'000'000),
              62'500 * cluster.node.nics * cluster.node.nic.bandwidth, 1);
}

TEST(Bisection, OfMetasClusterIsASeventhOfItsNics) {
  EXPECT_NEAR(bisection_bandwidth(read_cluster("meta-24k-h100"), 24576), 1536 * 8 * 50e9 / 7, 1e3);
}

Vertex named(const LinkGraph& graph, const std::string& name) {
  for (Vertex vertex = 0; vertex < boost::num_vertices(graph); ++vertex)
    if (graph[vertex].name == name) return vertex;
  ADD_FAILURE() << "no " << name;
  return 0;
}

RC_GTEST_PROP(Route, AcrossTheFabricIsAShortestOneOfTheGraph, ()) {
  Cluster cluster = *rc::gen::element(tree(2), tree(1, true), torus({3, 4}), torus({4, 2, 3}));
  const int nodes = cluster.fabric.kind == FabricKind::torus ? cluster.max_nodes : 64;
  const int from = *rc::gen::inRange(0, nodes), to = *rc::gen::inRange(0, nodes);
  RC_PRE(from != to);
  const LinkGraph graph = make_graph(cluster, nodes);
  const auto route = shortest_route(graph, named(graph, fmt::format("node{}.nic0", from)),
                                    named(graph, fmt::format("node{}.nic0", to)));
  // Two more: from the NIC and to it.
  RC_ASSERT(route.size() == fabric_route(cluster, {from, 0}, {to, 0}).size() + 2);
}

RC_GTEST_PROP(Route, CrossesOnlyLinksThatTheFabricHas, ()) {
  Cluster direct = plain(4, 64);
  direct.fabric.kind = FabricKind::dragonfly;
  direct.fabric.minimal_routing = true;
  direct.fabric.levels = {{"group", 8, 1}};
  const Cluster cluster = *rc::gen::element(tree(2), tree(1, true), torus({3, 4}), torus({4, 2, 3}), direct);
  const NicPlace from{*rc::gen::inRange(0, cluster.max_nodes), *rc::gen::inRange(0, cluster.node.nics)};
  const NicPlace to{*rc::gen::inRange(0, cluster.max_nodes), *rc::gen::inRange(0, cluster.node.nics)};
  const std::vector<std::string> all = fabric_link_names(cluster, cluster.max_nodes);
  for (const FabricLink& link : fabric_route(cluster, from, to))
    RC_ASSERT(std::count(all.begin(), all.end(), link.name) == 1);
}

TEST(Route, BoundIsItsNarrowestLink) {
  const Cluster cluster = read_cluster("dgx-1-v100");
  EXPECT_DOUBLE_EQ(route_between(cluster, 0, 3).port.bandwidth, 50e9);
  EXPECT_DOUBLE_EQ(route_between(cluster, 0, 1).port.bandwidth, 25e9);
  EXPECT_EQ(route_between(cluster, 0, 6).hops.size(), 2U);  // through a GPU that has links to both
  EXPECT_DOUBLE_EQ(route_between(cluster, 0, 8).port.bandwidth, 12.5e9);
}

TEST(Graph, RefusesMoreThanAMillionGpus) {
  EXPECT_THROW(make_graph(read_cluster("dgx-h100"), 1 << 20), InputError);
}

}  // namespace
}  // namespace rehearse
