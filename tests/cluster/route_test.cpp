#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "cluster/cluster.h"
#include "cluster/route.h"
#include "cluster_file.h"

namespace rehearse {
namespace {

Cluster two_nodes() {
  return read_cluster(write_cluster(small_cluster().dump()));
}

TEST(Route, InsideANodeUsesTheGpuLink) {
  const Route path = route_between(two_nodes(), 0, 3);
  EXPECT_FALSE(path.crosses_nodes);
  EXPECT_DOUBLE_EQ(path.port.bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(path.port.latency, 3e-6);
}

TEST(Route, AcrossNodesUsesANicWhole) {
  const Route path = route_between(two_nodes(), 3, 4);
  EXPECT_TRUE(path.crosses_nodes);
  EXPECT_DOUBLE_EQ(path.port.bandwidth, 25e9);
  EXPECT_DOUBLE_EQ(path.port.latency, 4e-6);
}

TEST(Route, GpusOutsideTheClusterAreRefused) {
  const Cluster cluster = two_nodes();
  EXPECT_THROW(route_between(cluster, -1, 0), InputError);
  EXPECT_THROW(route_between(cluster, 0, 8), InputError);
  EXPECT_NO_THROW(route_between(cluster, 0, 7));
}

TEST(Route, JoinsTwoDifferentGpus) {
  EXPECT_THROW(route_between(two_nodes(), 2, 2), InputError);
}

TEST(Route, ClusterWithoutALimitHasAnyGpu) {
  EXPECT_TRUE(route_between(read_cluster("dgx-h100"), 0, 1'000'000).crosses_nodes);
}

RC_GTEST_PROP(Route, IsTheSameBothWaysAndCrossesExactlyBetweenNodes, ()) {
  const Cluster cluster = read_cluster("selene");
  const int from = *rc::gen::inRange(0, 4480);
  const int to = *rc::gen::inRange(0, 4480);
  RC_PRE(from != to);
  const Route there = route_between(cluster, from, to);
  const Route back = route_between(cluster, to, from);
  RC_ASSERT(there.crosses_nodes == (from / 8 != to / 8));
  RC_ASSERT(there.port.bandwidth == back.port.bandwidth && there.port.latency == back.port.latency);
}

TEST(Nic, GpusAreSpreadEvenlyOverFewerNics) {
  const Cluster cluster = two_nodes();
  EXPECT_EQ(cluster.nic_of(0), 0);
  EXPECT_EQ(cluster.nic_of(1), 0);
  EXPECT_EQ(cluster.nic_of(2), 1);
  EXPECT_EQ(cluster.nic_of(3), 1);
}

TEST(Nic, LimitsAreThoseOnRecordForItsKindAndRate) {
  const NicLimits hdr = read_cluster("selene").node.nic_limits;
  EXPECT_DOUBLE_EQ(hdr.messages_per_s, 215e6);
  EXPECT_NEAR(hdr.efficiency, 4096.0 / (4096 + 26), 1e-4);
  EXPECT_NEAR(read_nic_limits("roce", 25e9).efficiency, 4096.0 / (4096 + 82), 1e-4);
  EXPECT_NEAR(read_nic_limits("efa", 25e9).efficiency, 193.72 / 200, 1e-4);
  for (const char* kind : {"infiniband", "roce", "efa"})
    EXPECT_FALSE(read_nic_limits(kind, 50e9).source.empty()) << kind;
}

TEST(Nic, WithoutRecordHasNoLimits) {
  const NicLimits none = read_nic_limits("pigeon", 1);
  EXPECT_DOUBLE_EQ(none.efficiency, 1);
  EXPECT_DOUBLE_EQ(none.messages_per_s, 0);
}

}  // namespace
}  // namespace rehearse
