#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/cluster.h"
#include "cluster_file.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

std::string complaint_with(const std::string& pointer, const Json& value) {
  Json cluster = small_cluster();
  cluster[Json::json_pointer(pointer)] = value;
  return complaint(cluster);
}

TEST(BadCluster, GoodOneRaisesNoComplaint) {
  EXPECT_EQ(complaint(small_cluster()), "");
}

TEST(BadCluster, AGpuHasAtLeastOneMultiprocessorWhereTheyAreOnRecord) {
  EXPECT_EQ(complaint_with("/gpu/multiprocessors", 132), "");
  EXPECT_THAT(complaint_with("/gpu/multiprocessors", 0), HasSubstr("multiprocessors"));
}

TEST(Bandwidth, BitsAndBytesAreToldApart) {
  Json cluster = small_cluster();
  cluster["node"]["nics"]["bandwidth"] = "200GB/s";
  EXPECT_DOUBLE_EQ(read_cluster(write_cluster(cluster.dump())).node.nic.bandwidth, 200e9);
  cluster["node"]["nics"]["bandwidth"] = "200Gbps";
  EXPECT_DOUBLE_EQ(read_cluster(write_cluster(cluster.dump())).node.nic.bandwidth, 25e9);
}

class EveryBandwidth : public testing::TestWithParam<const char*> {};

TEST_P(EveryBandwidth, MustBeAPositiveQuantityWithAUnitOfItsKind) {
  for (const char* value : {"\"0\"", "\"0GB/s\"", "\"-5GB/s\"", "\"200\"", "\"200Gb/s\"", "\"200GBps\"",
                            "\"200GB\"", "\"nan\"", "\"1e300GB/s\"", "\"1e400GB/s\"", "200", "null", "{}"}) {
    EXPECT_THAT(complaint_with(GetParam(), Json::parse(value)), HasSubstr(GetParam())) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Fields, EveryBandwidth,
                         testing::Values("/node/gpu_link/bandwidth", "/node/nics/bandwidth",
                                         "/gpu/memory_bandwidth"));

TEST(BadCluster, LatencyMayBeZeroButNotNegativeNorASecond) {
  EXPECT_EQ(complaint_with("/node/gpu_link/latency", "0"), "");
  for (const char* value : {"-1us", "3", "2s", "3GB", ""}) {
    EXPECT_THAT(complaint_with("/node/gpu_link/latency", value), HasSubstr("/node/gpu_link/latency"))
        << value;
  }
}

TEST(BadCluster, CountsKeepToTheirRange) {
  for (const char* pointer : {"/node/gpus", "/node/nics/count", "/max_nodes"}) {
    for (const char* value : {"-1", "1e300", "4.5", "\"4\"", "99999999999"}) {
      EXPECT_THAT(complaint_with(pointer, Json::parse(value)), HasSubstr(pointer)) << value;
    }
  }
  EXPECT_THAT(complaint_with("/node/gpus", 0), HasSubstr("/node/gpus"));
}

TEST(BadCluster, NicsAreNeededUnlessThereIsOneNode) {
  Json cluster = small_cluster();
  cluster["node"].erase("nics");
  EXPECT_THAT(complaint(cluster), HasSubstr("/node/nics: is required unless max_nodes is 1 (max_nodes = 2)"));
  cluster["max_nodes"] = 0;
  EXPECT_THAT(complaint(cluster), HasSubstr("/node/nics"));
  cluster["max_nodes"] = 1;
  EXPECT_EQ(complaint(cluster), "");
}

TEST(BadCluster, UnknownKeyGetsTheNearest) {
  EXPECT_THAT(complaint_with("/node/nic", Json::object()), HasSubstr("/node/nic: is not a known key"));
  EXPECT_THAT(complaint_with("/gpu/peak/bf61", "1TFLOPS"), HasSubstr("nearest legal: bf16"));
  EXPECT_THAT(complaint_with("/max_node", 3), HasSubstr("nearest legal: max_nodes"));
  Json cluster = small_cluster();
  cluster["node"]["nicz"] = cluster["node"]["nics"];
  cluster["node"].erase("nics");
  EXPECT_THAT(complaint(cluster), HasSubstr("nearest legal: nics"));
}

TEST(BadCluster, EveryKeyThatMattersIsRequired) {
  for (const char* pointer :
       {"/schema", "/source", "/gpu", "/node", "/gpu/name", "/gpu/memory", "/gpu/peak", "/node/gpus",
        "/node/gpu_link", "/node/gpu_link/kind", "/node/gpu_link/latency"}) {
    Json cluster = small_cluster();
    const Json::json_pointer path(pointer);
    cluster[path.parent_pointer()].erase(path.back());
    EXPECT_THAT(complaint(cluster), HasSubstr(std::string(pointer) + ": is required")) << pointer;
  }
}

TEST(BadCluster, AtLeastOnePeakIsNeeded) {
  EXPECT_THAT(complaint_with("/gpu/peak", Json::object()), HasSubstr("/gpu/peak: must name the peak"));
  EXPECT_THAT(complaint_with("/gpu/peak/bf16", "0TFLOPS"), HasSubstr("/gpu/peak/bf16"));
}

TEST(BadCluster, SchemaOfAnotherFileIsRefused) {
  EXPECT_THAT(complaint_with("/schema", "rehearse.report/1"),
              HasSubstr("is a report of a run, not a cluster; nearest legal: rehearse compare"));
  EXPECT_THAT(complaint_with("/schema", "rehearse.cluster/9"), HasSubstr("nearest legal: rehearse.cluster/1"));
}

TEST(BadCluster, WhatIsNoJsonObjectIsRefused) {
  for (const char* text : {"", "gpus: 8", "[]", "3", "{\"schema\": "}) {
    EXPECT_THROW(read_cluster(write_cluster(text)), InputError) << text;
  }
  EXPECT_THROW(read_cluster(scratch().file("none/cluster.json")), InputError);
}

TEST(BadCluster, MisspeltNameGetsTheNearest) {
  try {
    read_cluster("selen");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().front().nearest, "selene");
  }
}

}  // namespace
}  // namespace rehearse
