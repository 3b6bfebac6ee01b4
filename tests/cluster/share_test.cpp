// A job's share of nodes that have more GPUs than one host.
#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/share.h"

namespace rehearse {
namespace {

TEST(Share, FillsNodesOfOneHost) {
  const Cluster cluster = read_cluster("dgx-h100");
  for (const int gpus : {1, 4, 8, 12, 64}) EXPECT_EQ(even_share(cluster, gpus), 8) << gpus;
}

TEST(Share, TakesEquallyManyHostsOfTheFewestDomains) {
  const Cluster cluster = read_cluster("gb200-nvl72");
  EXPECT_EQ(even_share(cluster, 64), 64);    // of one domain
  EXPECT_EQ(even_share(cluster, 72), 72);    // all of one
  EXPECT_EQ(even_share(cluster, 128), 64);   // 2 x 64
  EXPECT_EQ(even_share(cluster, 144), 72);   // 2 x 72
  EXPECT_EQ(even_share(cluster, 256), 64);   // 4 x 64
  EXPECT_EQ(even_share(cluster, 512), 64);   // 8 x 64: 7.1 would be full
  EXPECT_EQ(even_share(cluster, 1024), 64);  // 16 x 64, since 256 hosts are no multiple of 15
  EXPECT_EQ(even_share(cluster, 96), 48);    // 2 x 48
}

TEST(Share, TakesMoreDomainsOnlyWhereEachGivesMoreThanTheLastFilledOne) {
  const Cluster cluster = read_cluster("gb200-nvl72");
  EXPECT_EQ(even_share(cluster, 160), 40);  // 4 x 40 rather than 72 + 72 + 16
  EXPECT_EQ(even_share(cluster, 324), 72);  // 4 x 72 + 36 rather than 9 x 36
}

TEST(Share, KeepsTensorParallelGroupsWithinADomain) {
  const Cluster cluster = read_cluster("gb200-nvl72");
  EXPECT_EQ(even_share(cluster, 88), 44);
  EXPECT_EQ(even_share(cluster, 88, 4), 44);
  EXPECT_EQ(even_share(cluster, 88, 8), 72);
  EXPECT_EQ(even_share(cluster, 128, 16), 64);
}

TEST(Share, FillsDomainsWhereNoneIsEven) {
  const Cluster cluster = read_cluster("gb200-nvl72");
  EXPECT_EQ(even_share(cluster, 76), 72);  // 19 hosts, a prime
  EXPECT_EQ(even_share(cluster, 70), 72);  // half a host
}

TEST(Share, TakesTheNicsOfItsGpus) {
  const Cluster whole = read_cluster("gb200-nvl72"), part = with_share(whole, 64);
  EXPECT_EQ(part.node.gpus, 64);
  EXPECT_EQ(part.node.nics, 64);
  EXPECT_EQ(part.nic_of(63), 63);
  EXPECT_DOUBLE_EQ(part.node.nic.bandwidth, whole.node.nic.bandwidth);
  EXPECT_EQ(with_share(whole, 72).node.gpus, 72);
}

TEST(Share, KeepsTheOneNicOfANode) {
  Cluster cluster = read_cluster("gb200-nvl72");
  cluster.node.nics = 1;
  EXPECT_EQ(with_share(cluster, 4).node.nics, 1);
}

void expect_refused(const char* name, int gpus_per_node, const std::string& nearest) {
  try {
    with_share(read_cluster(name), gpus_per_node);
    FAIL() << name << " gave " << gpus_per_node;
  } catch (const InputError& error) {
    EXPECT_EQ(error.violations().front().pointer, "/gpus_per_node");
    EXPECT_EQ(error.violations().front().nearest, nearest);
  }
}

TEST(Share, OfPartsOfAHostOrMoreThanANodeIsRefused) {
  expect_refused("gb200-nvl72", 30, "28 or 32");
  expect_refused("gb200-nvl72", 2, "4");
  expect_refused("gb200-nvl72", 80, "72");
  expect_refused("dgx-h100", 4, "8");
}

TEST(Share, OfNodesWithLinksOfTheirOwnIsRefused) {
  Cluster cluster = read_cluster("dgx-1-v100");
  ASSERT_FALSE(cluster.node.wiring.empty());
  cluster.nccl.host_gpus = 4;
  EXPECT_EQ(even_share(cluster, 12), 8);
  EXPECT_THROW(with_share(cluster, 4), InputError);
}

}  // namespace
}  // namespace rehearse
