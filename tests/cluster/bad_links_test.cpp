// Wirings and fabrics that no cluster can have are refused with their place.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/read_changed.h"
#include "cluster_file.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

std::string complaint_of_wiring(const std::string& wiring) {
  Json cluster = small_cluster();
  cluster["node"]["wiring"] = Json::parse(wiring);
  return complaint(cluster);
}

std::string complaint_of_fabric(const std::string& fabric, int max_nodes = 16) {
  Json cluster = small_cluster();
  cluster["fabric"] = Json::parse(fabric);
  cluster["max_nodes"] = max_nodes;
  return complaint(cluster);
}

constexpr const char* kAll =
    R"({"among": ["gpu0", "gpu1", "gpu2", "gpu3"], "kind": "nvlink", "bandwidth": "50GB/s"})";

TEST(Wiring, AGoodOneIsTaken) {
  EXPECT_EQ(complaint_of_wiring(fmt::format("[{}]", kAll)), "");
  EXPECT_EQ(
      complaint_of_wiring(
          R"([{"hub": "sw", "to": ["gpu0", "gpu1", "gpu2", "gpu3", "nic0"], "kind": "pcie", "bandwidth": "32GB/s"}])"),
      "");
}

TEST(Wiring, MustJoinAllGpus) {
  EXPECT_THAT(complaint_of_wiring(R"([{"among": ["gpu0", "gpu1"], "kind": "nvlink", "bandwidth": "50GB/s"},
                                      {"among": ["gpu2", "gpu3"], "kind": "nvlink", "bandwidth": "50GB/s"}])"),
              HasSubstr("/node/wiring: must join gpu0 and gpu2"));
}

TEST(Wiring, NamesWhatIsThereOnce) {
  EXPECT_THAT(
      complaint_of_wiring(R"([{"among": ["gpu0", "gpu9"], "kind": "nvlink", "bandwidth": "50GB/s"}])"),
      HasSubstr("names a device that the node does not have"));
  EXPECT_THAT(complaint_of_wiring(R"([{"among": ["gpu0", "nic2"], "kind": "pcie", "bandwidth": "50GB/s"}])"),
              HasSubstr("names a device that the node does not have"));
  EXPECT_THAT(
      complaint_of_wiring(R"([{"among": ["gpu1", "gpu1"], "kind": "nvlink", "bandwidth": "50GB/s"}])"),
      HasSubstr("leads back to itself"));
  EXPECT_THAT(complaint_of_wiring(fmt::format("[{}, {}]", kAll, kAll)), HasSubstr("is given twice"));
}

TEST(Wiring, BandwidthsArePositiveAndListsLists) {
  for (const char* bandwidth : {"0GB/s", "-1GB/s", "50", "1e300GB/s"})
    EXPECT_THAT(complaint_of_wiring(fmt::format(
                    R"([{{"among": ["gpu0", "gpu1"], "kind": "x", "bandwidth": "{}"}}])", bandwidth)),
                HasSubstr("/node/wiring/0/bandwidth"))
        << bandwidth;
  for (const char* list : {"3", "\"gpu0\"", "[1, 2]", "{}"})
    EXPECT_THAT(
        complaint_of_wiring(fmt::format(R"([{{"among": {}, "kind": "x", "bandwidth": "1GB/s"}}])", list)),
        HasSubstr("/node/wiring/0/among"))
        << list;
}

TEST(Wiring, MoreLinksThanAnyNodeHasAreRefused) {
  std::string names = "\"gpu0\"";
  for (int i = 0; i < 400; ++i) names += fmt::format(", \"s{}\"", i);
  EXPECT_THAT(
      complaint_of_wiring(fmt::format(R"([{{"among": [{}], "kind": "x", "bandwidth": "1GB/s"}}])", names)),
      HasSubstr("links"));
}

TEST(NicOfGpu, NamesOneForEach) {
  Json cluster = small_cluster();
  cluster["node"]["nics"]["of_gpu"] = {0, 0, 1};
  EXPECT_THAT(complaint(cluster), HasSubstr("/node/nics/of_gpu: must name one NIC for each GPU"));
  cluster["node"]["nics"]["of_gpu"] = {0, 0, 1, 2};
  EXPECT_THAT(complaint(cluster), HasSubstr("/node/nics/of_gpu"));
  cluster["node"]["nics"]["of_gpu"] = {1, 0, 1, 0};
  EXPECT_EQ(complaint(cluster), "");
  EXPECT_EQ(read_cluster(write_cluster(cluster.dump())).nic_of(2), 1);
}

TEST(Fabric, LevelsGrowByWholeSwitches) {
  const auto levels = [](int first, int second) {
    return complaint_of_fabric(fmt::format(
        R"({{"kind": "fat-tree", "levels": [{{"name": "a", "nodes": {}}}, {{"name": "b", "nodes": {}}}]}})",
        first, second));
  };
  EXPECT_EQ(levels(4, 8), "");
  EXPECT_THAT(levels(4, 6), HasSubstr("/fabric/levels/1/nodes: must be a multiple of the level below"));
  EXPECT_THAT(levels(4, 4), HasSubstr("/fabric/levels/1/nodes"));
  EXPECT_THAT(levels(0, 4), HasSubstr("/fabric/levels/0/nodes"));
}

TEST(Fabric, OversubscriptionIsAPositiveNumber) {
  for (const char* value : {"0", "-2", "1e300", "\"2\""})
    EXPECT_THAT(
        complaint_of_fabric(fmt::format(
            R"({{"kind": "fat-tree", "levels": [{{"name": "a", "nodes": 2, "oversubscription": {}}}]}})",
            value)),
        HasSubstr("oversubscription"))
        << value;
}

TEST(Fabric, OversubscriptionBesideTheLevelsIsThatOfTheTopmost) {
  const Cluster cluster = read_cluster_changed("meta-24k-h100", {{"fabric", {{"oversubscription", 2.5}}}});
  ASSERT_EQ(cluster.fabric.levels.size(), 2U);
  EXPECT_EQ(cluster.fabric.levels[0].oversubscription, 1);
  EXPECT_EQ(cluster.fabric.levels[1].oversubscription, 2.5);
  EXPECT_THAT(complaint_of_fabric(R"({"kind": "fat-tree", "levels": [], "oversubscription": 2})"),
              HasSubstr("oversubscription"));
}

TEST(Fabric, ATorusHasAsManyRoutersAsNodes) {
  const auto torus = [](const char* extents) {
    return complaint_of_fabric(
        fmt::format(R"({{"kind": "torus", "extents": {}, "link_bandwidth": "10GB/s"}})", extents));
  };
  EXPECT_EQ(torus("[4, 4]"), "");
  EXPECT_EQ(torus("[2, 2, 4]"), "");
  for (const char* extents : {"[4, 5]", "[]", "[16, 1, 1, 1]", "[1048576, 1048576]", "[0]", "4", "[4.0, 4]"})
    EXPECT_THAT(torus(extents), HasSubstr("/fabric/extents")) << extents;
}

TEST(Fabric, ADragonflySaysHowItRoutes) {
  const char* const group = R"("levels": [{"name": "group", "nodes": 4}])";
  EXPECT_EQ(complaint_of_fabric(fmt::format(R"({{"kind": "dragonfly", "routing": "minimal", {}}})", group)),
            "");
  EXPECT_THAT(complaint_of_fabric(fmt::format(R"({{"kind": "dragonfly", {}}})", group)),
              HasSubstr("/fabric/routing"));
  EXPECT_THAT(
      complaint_of_fabric(fmt::format(R"({{"kind": "dragonfly", "routing": "minimal", {}}})", group), 4),
      HasSubstr("two groups"));
}

TEST(Fabric, UnknownKindsAndKeysGetTheNearest) {
  EXPECT_THAT(complaint_of_fabric(R"({"kind": "fat-tre", "levels": []})"),
              HasSubstr("nearest legal: fat-tree"));
  EXPECT_THAT(complaint_of_fabric(R"({"kind": "switch", "nots": ""})"), HasSubstr("nearest legal: note"));
}

}  // namespace
}  // namespace rehearse
