// The clusters that ship with the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "base/json_reader.h"
#include "cluster/cluster.h"
#include "cluster_file.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

constexpr std::array kPromised = {"dgx-a100-80gb", "selene",        "dgx-h100",    "dgx-h200", "p3.16xlarge",
                                  "p4d.24xlarge",  "p5.48xlarge",   "cpu-node",    "dgx-2",    "gb200-nvl72",
                                  "meta-24k-h100", "jean-zay-a100", "vtrain-a100", "dgx-b200", "hgx-h200"};

TEST(Topologies, EveryPromisedNameIsThere) {
  const std::vector<std::string> names = cluster_names();
  for (const char* name : kPromised) EXPECT_THAT(names, testing::Contains(name));
}

TEST(Topologies, EachReadsAndNamesItsSource) {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = read_cluster(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_GT(cluster.source.size(), 20U) << name;
    EXPECT_TRUE(cluster.node.nics > 0 || cluster.max_nodes == 1) << name;
    EXPECT_GT(cluster.node.gpu_link.latency, 0) << name;
  }
}

TEST(Topologies, ProfilesAreOnlyNamedForTheirOwnGpu) {
  const std::map<std::string, std::string> gpu_of = {{"a100-sxm-80gb", "A100-SXM4-80GB"},
                                                     {"a100-sxm-40gb", "A100-SXM4-40GB"},
                                                     {"a100-pcie-80gb", "A100-PCIe-80GB"},
                                                     {"v100-sxm", "V100-SXM2"},  // whatever its memory
                                                     {"v100-sxm3", "V100-SXM3-32GB"},
                                                     {"h100-sxm", "H100-SXM5-80GB"},
                                                     {"h100-96gb-500w", "H100-96GB-HBM2e-500W"},
                                                     {"h200-sxm", "H200-SXM-141GB"},
                                                     {"b200-sxm", "B200-SXM-180GB"},
                                                     {"gb200", "GB200-186GB"},
                                                     {"b300-sxm", "B300-SXM-288GB"},
                                                     {"gb300", "GB300-288GB"},
                                                     {"h100-halves", "H100 part of 64 multiprocessors"},
                                                     {"h100-quarters", "H100 part of 32 multiprocessors"},
                                                     {"cpu-generic", "CPU core"}};
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = read_cluster(name);
    if (cluster.profile.empty()) continue;
    ASSERT_TRUE(gpu_of.contains(cluster.profile)) << name;
    EXPECT_TRUE(cluster.gpu.name.starts_with(gpu_of.at(cluster.profile))) << name;
  }
}

TEST(Topologies, DgxA100IsThatOfItsDataSheet) {
  const Cluster cluster = read_cluster("dgx-a100-80gb");
  EXPECT_EQ(cluster.node.gpus, 8);
  EXPECT_EQ(cluster.node.nics, 8);
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(cluster.node.nic.bandwidth, 25e9);
  EXPECT_EQ(cluster.gpu.peak_flops,
            (std::map<std::string, double>{
                {"bf16", 312e12}, {"fp16", 312e12}, {"fp32", 19.5e12}, {"tf32", 156e12}}));
}

// Of the known GPUs, only Blackwell.
TEST(Topologies, SayWhichProductsTakeFp8InEitherLayout) {
  for (const char* name : {"dgx-b200", "gb200-nvl72", "dgx-b300", "gcp-a4"})
    EXPECT_TRUE(takes_either_fp8_layout(read_cluster(name).gpu)) << name;
  for (const char* name : {"dgx-h100", "dgx-a100", "mi300x-8", "cpu-node"})
    EXPECT_FALSE(takes_either_fp8_layout(read_cluster(name).gpu)) << name;
  EXPECT_EQ(read_cluster("gb300-nvl72").gpu.compute_capability, 10.3);
  Gpu small = read_cluster("dgx-b200").gpu;
  small.compute_capability = 12;
  EXPECT_FALSE(takes_either_fp8_layout(small)) << "Blackwell's cards for workstations";
}

TEST(Topologies, DgxH100IsThatOfItsDataSheet) {
  const Cluster cluster = read_cluster("dgx-h100");
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 450e9);
  EXPECT_DOUBLE_EQ(cluster.node.nic.bandwidth, 50e9);
  EXPECT_DOUBLE_EQ(cluster.gpu.peak_flops.at("bf16"), 989e12);
  EXPECT_DOUBLE_EQ(cluster.gpu.peak_flops.at("fp8"), 1979e12);
  EXPECT_DOUBLE_EQ(cluster.gpu.peak_flops.at("fp32"), 67e12);
}

TEST(Topologies, SeleneIs560DgxA100) {
  const Cluster selene = read_cluster("selene");
  const Cluster dgx = read_cluster("dgx-a100-80gb");
  EXPECT_EQ(selene.max_nodes, 560);
  EXPECT_EQ(selene.profile, "a100-sxm-80gb");
  EXPECT_EQ(selene.node.nic.bandwidth, dgx.node.nic.bandwidth);
  EXPECT_THAT(selene.source, HasSubstr("the rest as dgx-a100-80gb: " + dgx.source));
}

TEST(Like, GivenKeysReplaceAndTheOthersAreKept) {
  const Json json = Json::parse(
      R"({"schema": "rehearse.cluster/1", "source": "mine", "like": "dgx-h100", "node": {"nics": {"count": 4}}})");
  const Cluster cluster = read_cluster(write_cluster(json.dump()));
  EXPECT_EQ(cluster.node.nics, 4);
  EXPECT_DOUBLE_EQ(cluster.node.nic.bandwidth, 50e9);
  EXPECT_EQ(cluster.gpu.name, "H100-SXM5-80GB");
}

TEST(Like, NullTakesTheNicsAway) {
  const Json json = Json::parse(
      R"({"schema": "rehearse.cluster/1", "source": "mine", "like": "dgx-h100", "node": {"nics": null}, "max_nodes": 1})");
  EXPECT_EQ(read_cluster(write_cluster(json.dump())).node.nics, 0);
}

TEST(Like, CircleIsRefused) {
  Json json = {{"schema", "rehearse.cluster/1"}, {"source", "mine"}, {"like", "placeholder"}};
  json["like"] = write_cluster(json.dump());
  EXPECT_THAT(complaint(json), HasSubstr("/like: may lead through 4 clusters at most"));
}

TEST(Like, UnknownNameGetsTheNearest) {
  Json json = small_cluster();
  json["like"] = "dgx-h10";
  EXPECT_THAT(complaint(json), HasSubstr("nearest legal: dgx-h100"));
}

}  // namespace
}  // namespace rehearse
