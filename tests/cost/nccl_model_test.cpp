#include "cost/nccl/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/error.h"
#include "cost/nccl/read_model.h"
#include "cost/nccl/table.h"
#include "machines.h"

namespace rehearse::nccl {
namespace {

constexpr GroupShape kNode{8, 1, 1};

Cluster machine() {
  return read_cluster("dgx-h100");
}

Model bare() {
  Model model = read_model(kDefaultModel);
  model.corrections.clear();
  model.measured.clear();
  model.systems = {{"machine", machine()}};
  return model;
}

double seconds(const Model& model, double bytes, const GroupShape& group = kNode) {
  return collective_time(model, machine(), CollectiveOp::all_reduce, bytes, group).total();
}

Measured table(How how, std::vector<Measured::Row> rows) {
  return {0, CollectiveOp::all_reduce, 1, 8, {}, how, {}, std::move(rows)};
}

Correction correction(int first_octave, std::vector<double> ratios) {
  Correction made;
  made.first_octave = first_octave;
  made.log_ratio = std::move(ratios);
  return made;
}

Choice belief(double latency_s, double rate) {
  Choice choice;
  choice.latency_s = latency_s;
  choice.rate = rate;
  return choice;
}

TEST(NcclCorrection, IsReadOnLinesBetweenItsPointsAndFadesAboveThem) {
  const Correction made = correction(10, {0.2, 0.6});
  const Choice any = belief(1e-5, 1e9);
  EXPECT_DOUBLE_EQ(read_at(made, 1024, any), 0.2);
  EXPECT_DOUBLE_EQ(read_at(made, 2048, any), 0.4);
  EXPECT_DOUBLE_EQ(read_at(made, 4096, any), 0.6);
  EXPECT_DOUBLE_EQ(read_at(made, 4096 * 8, any), 0.3);
  EXPECT_DOUBLE_EQ(read_at(made, 4096 * 64, any), 0);
}

TEST(NcclCorrection, OfARateHoldsForTheBytesOfSmallerMessages) {
  const Correction made = correction(30, {std::log(3)});
  const Choice choice = belief(1e-5, 1e9);
  EXPECT_NEAR(std::exp(read_at(made, 1 << 28, choice)), 3, 1e-3);
  const double half = choice.latency_s * choice.rate;  // as long on the wire as in starting
  EXPECT_NEAR(std::exp(read_at(made, half, choice)), (1 + 3) / 2.0, 1e-4);
  EXPECT_NEAR(read_at(made, 1, choice), 0, 1e-3);
}

TEST(NcclCorrection, OfStartsFadesForSmallerMessages) {
  const Correction made = correction(12, {0.6});
  const Choice choice = belief(1e-5, 1e15);
  EXPECT_NEAR(read_at(made, 4096 / 8, choice), 0.3, 1e-6);
  EXPECT_NEAR(read_at(made, 4096 / 64, choice), 0, 1e-6);
}

TEST(NcclCorrection, OfEachClassMultipliesTheBelief) {
  Model model = bare();
  const double believed = seconds(model, 1024);
  const auto everywhere = [](double ratio) { return correction(0, std::vector<double>(20, ratio)); };
  model.corrections = {everywhere(0.5), everywhere(0.25)};
  EXPECT_NEAR(seconds(model, 1024), believed * std::exp(0.75), 1e-15);
  model.corrections[1].link = "pcie";
  EXPECT_NEAR(seconds(model, 1024), believed * std::exp(0.5), 1e-15);
  model.corrections[0].across = true;
  EXPECT_DOUBLE_EQ(seconds(model, 1024), believed);
}

TEST(NcclMeasured, RowsStandAsMeasuredWhateverTheCorrections) {
  Model model = bare();
  model.corrections = {correction(10, {0.5, 0.1, -0.2})};
  model.measured = {table(How::published, {{1024, 3e-5}, {1 << 20, 9e-5}})};
  EXPECT_NEAR(seconds(model, 1024), 3e-5, 1e-15);
  EXPECT_NEAR(seconds(model, 1 << 20), 9e-5, 1e-15);
}

TEST(NcclMeasured, BetweenRowsFollowsTheBelief) {
  Model model = bare();
  const double before = seconds(model, 1 << 15);
  model.measured = {
      table(How::published, {{1024, 2 * seconds(model, 1024)}, {1 << 20, 2 * seconds(model, 1 << 20)}})};
  EXPECT_NEAR(seconds(model, 1 << 15), 2 * before, 1e-12);
}

TEST(NcclMeasured, OnTheUsersMachineOutranksWhatWasPublished) {
  Model model = bare();
  model.measured = {table(How::published, {{1024, 3e-5}}), table(How::measured, {{1024, 5e-5}})};
  EXPECT_NEAR(seconds(model, 1024), 5e-5, 1e-15);
}

// For a cluster with the same nodes, measurements within a node apply; across nodes nothing is known of its
// NICs.
TEST(NcclMeasured, WithinANodeHoldsForAllClustersOfThoseNodes) {
  Cluster cluster = machine();
  cluster.node.nic_kind = "roce";
  Model model = bare();
  const auto predicted = [&](const GroupShape& group) {
    return collective_time(model, cluster, CollectiveOp::all_reduce, 1e6, group).total();
  };
  const GroupShape kNodes{8, 2, 1};
  const double across = predicted(kNodes);
  model.measured = {table(How::measured, {{1e6, 1}}), table(How::measured, {{1e6, 1}})};
  model.measured[1].nodes = 2;
  EXPECT_DOUBLE_EQ(predicted(kNode), 1);
  EXPECT_DOUBLE_EQ(predicted(kNodes), across);
}

double all_reduce_s(const Model& model, const Cluster& cluster, double bytes, const GroupShape& group) {
  return collective_time(model, cluster, CollectiveOp::all_reduce, bytes, group).total();
}

// Twice as long as NCCL believes: so it is on faster links too, of which its channels use a part.
TEST(NcclMeasured, IsCarriedOverAsTheRatioToTheBeliefWhereAFigureDiffers) {
  Model model = bare();
  const double believed = all_reduce_s(model, machine(), 1 << 30, kNode);
  model.measured = {table(How::published, {{1 << 30, 2 * believed}})};
  Cluster faster = machine();
  faster.node.gpu_link.bandwidth *= 2;
  EXPECT_NEAR(all_reduce_s(model, machine(), 1 << 30, kNode), 2 * believed, 1e-9 * believed);
  EXPECT_LT(all_reduce_s(model, faster, 1 << 30, kNode), 1.5 * believed);
}

TEST(NcclMeasured, GoesByWhatAClusterIsNotByItsName) {
  const Model model = read_model(kDefaultModel);
  Cluster renamed = read_cluster("dgx-h100"), other = read_cluster("dgx-a100-80gb");
  renamed.name = "mine";
  other.name = "dgx-h100";
  for (const GroupShape& group : {kNode, GroupShape{64, 8, 1}})
    for (const double bytes : {1e3, 1e6, 1e9}) {
      EXPECT_EQ(all_reduce_s(model, renamed, bytes, group),
                all_reduce_s(model, read_cluster("dgx-h100"), bytes, group));
      EXPECT_EQ(all_reduce_s(model, other, bytes, group),
                all_reduce_s(model, read_cluster("dgx-a100-80gb"), bytes, group));
    }
}

TEST(NcclSystems, AreNamedWithWhatDiffers) {
  const Model model = read_model(kDefaultModel);
  Cluster cluster = read_cluster("dgx-h100");
  EXPECT_EQ(measured_on(model, cluster, true), "measured on dgx-h100");
  cluster.node.nics = 4;
  EXPECT_EQ(measured_on(model, cluster, false), "measured on dgx-h100");
  EXPECT_EQ(measured_on(model, cluster, true),
            "measured on dgx-h100 within a node, as measured on dgx-h100, except NICs across nodes");
  cluster.fabric.levels.front().nodes = 16;
  EXPECT_EQ(
      measured_on(model, cluster, true),
      "measured on dgx-h100 within a node, as measured on dgx-h100, except NICs and fabric across nodes");
  cluster.nccl.sm = 0;
  EXPECT_EQ(measured_on(model, cluster, true), "modelled");
}

// The same eight GPUs of a larger node: neither jump nor gap to a measured node.
TEST(NcclMeasured, HoldsForTheSameGpusOfALargerNode) {
  const Model model = read_model(kDefaultModel);
  Cluster larger = read_cluster("dgx-h100");
  larger.node.gpus = larger.node.nics = 16;
  EXPECT_EQ(measured_on(model, larger, false), "as measured on dgx-h100, except GPUs per node");
  EXPECT_EQ(basis_of(model, machine(), true), Basis::measured);
  EXPECT_EQ(basis_of(model, larger, false), Basis::scaled);
  for (double bytes = 1024; bytes < 1e10; bytes *= 1.7) {
    EXPECT_DOUBLE_EQ(all_reduce_s(model, larger, bytes, kNode), all_reduce_s(model, machine(), bytes, kNode));
    EXPECT_DOUBLE_EQ(all_reduce_s(model, larger, bytes, {64, 8, 1}),
                     all_reduce_s(model, machine(), bytes, {64, 8, 1}));
  }
}

// Two nodes of 16 as four of 8, which were measured: the ratio of NCCL's estimates carries the time over.
TEST(NcclMeasured, IsCarriedOverToNodesOfAnotherSize) {
  Model model = bare();
  const GroupShape four{32, 4, 1}, two{32, 2, 1};
  const double believed = seconds(model, 1 << 30, four);
  model.measured = {table(How::published, {{1 << 30, 2 * believed}})};
  model.measured[0].nodes = 4;
  model.measured[0].members = 32;
  Cluster larger = machine();
  larger.node.gpus = larger.node.nics = 16;
  const double there = all_reduce_s(model, larger, 1 << 30, two);
  model.measured.clear();
  EXPECT_NEAR(there, 2 * all_reduce_s(model, larger, 1 << 30, two), 1e-9 * there);
}

TEST(NcclSystems, OfAUserOutrankThoseThatWerePublished) {
  Model model = read_model(kDefaultModel);
  Measured own = table(How::measured, {{1024, 1e-3}});
  own.system = add_system(model.systems, "mine", machine());
  EXPECT_EQ(add_system(model.systems, "mine", machine()), own.system);
  const double published = all_reduce_s(model, machine(), 1024, kNode);
  const double gathered =
      collective_time(model, machine(), CollectiveOp::all_gather, 1 << 20, kNode).total();
  model.measured.push_back(own);
  EXPECT_GT(std::abs(published / 1e-3 - 1), 0.1);
  EXPECT_NEAR(all_reduce_s(model, machine(), 1024, kNode), 1e-3, 1e-12);
  EXPECT_EQ(collective_time(model, machine(), CollectiveOp::all_gather, 1 << 20, kNode).total(), gathered);
}

// Within the links that NCCL's own search tells apart, each figure on its own.
RC_GTEST_PROP(NcclTime, IsNoLongerOnABetterFigureOfAMeasuredSystem, ()) {
  static const Model model = read_model(kDefaultModel);
  Cluster cluster = read_cluster(*rc::gen::element<std::string>("dgx-h100", "dgx-a100-80gb", "dgx-b200"));
  const auto times = [] { return *rc::gen::element(1.0, 1.05, 1.5, 2.0, 4.0); };
  cluster.node.gpu_link.bandwidth *= times();
  cluster.node.nic.bandwidth *= times();
  Cluster better = cluster;
  better.node.gpu_link.bandwidth *= times();
  better.node.nic.bandwidth *= times();
  better.node.nic.latency /= times();
  const int nodes = *rc::gen::element(1, 2, 8, 64);
  const GroupShape group{nodes * *rc::gen::element(2, 4, 8), nodes, 1};
  const CollectiveOp op = *rc::gen::elementOf(std::vector{
      CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
      CollectiveOp::all_to_all, CollectiveOp::broadcast, CollectiveOp::send_receive});
  const double bytes = std::exp2(*rc::gen::inRange(8, 34));
  RC_ASSERT(collective_time(model, better, op, bytes, group).total() <=
            collective_time(model, cluster, op, bytes, group).total() * (1 + 1e-12));
}

TEST(NcclMeasured, SaysNothingOfOtherGroupsAndLittleOfFarSizes) {
  Model model = bare();
  const double other = seconds(model, 1024, {16, 2, 1}), far = seconds(model, 1 << 20);
  model.measured = {table(How::published, {{1024, 1.2 * seconds(model, 1024)}})};
  EXPECT_DOUBLE_EQ(seconds(model, 1024, {16, 2, 1}), other);
  EXPECT_DOUBLE_EQ(seconds(model, 1 << 20), far);
}

TEST(NcclTime, IsLatencyAndTheTransferAtTheRateOfTheLargest) {
  const Model model = bare();
  const CommunicationTime small = collective_time(model, machine(), CollectiveOp::all_gather, 8192, kNode);
  EXPECT_NEAR(small.transfer_s, 8192 * 7.0 / 8 / 360e9, 1e-15);
  EXPECT_GT(small.latency_s, 5e-6);
  const CommunicationTime large = collective_time(model, machine(), CollectiveOp::all_gather, 64e9, kNode);
  EXPECT_NEAR(large.transfer_s, 64e9 * 7.0 / 8 / 360e9, 1e-9);
}

TEST(NcclTime, OfABadlyTunedFabricKeepsItsLinksBusyForLonger) {
  Model model = bare();
  const double well = collective_time(model, machine(), CollectiveOp::all_reduce, 1e9, kNode).transfer_s;
  model.corrections = {correction(0, std::vector<double>(20, std::log(2)))};
  EXPECT_NEAR(collective_time(model, machine(), CollectiveOp::all_reduce, 1e9, kNode).transfer_s, 2 * well,
              1e-12);
}

TEST(NcclTime, IsNoShorterThanWhatTheNicsCarryOfThePayload) {
  Cluster cluster = machine();
  const GroupShape rails{16, 2, 1};
  const auto gather_s = [&] {
    return collective_time(bare(), cluster, CollectiveOp::all_gather, 64e9, rails).transfer_s;
  };
  cluster.node.nic_limits.efficiency = 0.25;
  EXPECT_NEAR(gather_s(), 32e9 / (8 * 50e9 * 0.25), 1e-6);
}

TEST(NcclTime, OfManySmallMessagesIsNoShorterThanTheNicsNeedToStartThem) {
  Cluster cluster = machine();
  cluster.node.nic_limits.messages_per_s = 1e3;
  const GroupShape rails{64, 8, 1};  // each rank sends to 56 on other nodes, through a NIC of its own
  EXPECT_NEAR(collective_time(bare(), cluster, CollectiveOp::all_to_all, 64, rails).total(), 56e-3, 1e-6);
}

// A step a rank: 4 us of the tree's simple protocol and 0.6 us of the ring's LL on NVLink, 14 and 2.7 over
// the network.
TEST(NcclTime, OfARoundIsAStepForEachRank) {
  const Model model = bare();
  const GroupShape four_nodes{32, 4, 1};
  EXPECT_DOUBLE_EQ(round_s(model, machine(), 1e9, kNode), 8 * 4e-6);
  EXPECT_DOUBLE_EQ(round_s(model, machine(), 1024, kNode), 8 * 0.6e-6);
  EXPECT_DOUBLE_EQ(round_s(model, machine(), 1e9, four_nodes), 32 * 14e-6);
  EXPECT_DOUBLE_EQ(round_s(model, machine(), 1024, four_nodes), 32 * 2.7e-6);
  EXPECT_EQ(round_s(model, machine(), 1e9, {1, 1, 1}), 0);
}

TEST(NcclTime, OfHardwareWithoutTablesSaysThatItIsExtrapolated) {
  EXPECT_TRUE(collective_time(bare(), machine(), CollectiveOp::all_reduce, 1, kNode).extrapolated);
  const Model shipped = read_model(kDefaultModel);
  EXPECT_FALSE(collective_time(shipped, machine(), CollectiveOp::all_reduce, 1, kNode).extrapolated);
}

TEST(NcclModel, ThatBreaksARuleIsRefused) {
  const Json good = read_json_file(SOURCE_DIR "/calibrate/collectives/nccl.json");
  const auto refuses = [](const Json& json) {
    EXPECT_THROW(parse_model(JsonReader(json, "model")), InputError);
  };
  EXPECT_NO_THROW(parse_model(JsonReader(good, "model")));
  Json bad = good;
  bad["measured"][0]["rows"][0][1] = -1;
  refuses(bad);
  bad = good;
  bad["measured"][0]["op"] = "allreduce";
  refuses(bad);
  bad = good;
  bad["corrections"][0]["log_ratio"][0] = 100;
  refuses(bad);
  bad = good;
  bad["constants"].erase("nvls_efficiency");
  refuses(bad);
  bad = good;
  bad["corrections"].push_back(bad["corrections"][0]);
  refuses(bad);
  bad = good;
  bad["speed"] = 1;
  refuses(bad);
}

TEST(NcclTable, PlacesHostsOfOneNvlinkDomainInIt) {
  Table trays;
  trays.nodes = 16;
  trays.gpus_per_node = 4;
  EXPECT_EQ(group_of(trays, read_cluster("gb300-nvl72")).nodes, 1);
  EXPECT_EQ(group_of(trays, read_cluster("dgx-h100")).nodes, 16);
  trays.nodes = 32;
  const GroupShape two_racks = group_of(trays, read_cluster("gb300-nvl72"));
  EXPECT_EQ(two_racks.nodes, 2);
  EXPECT_EQ(two_racks.members, 128);
  trays.gpus_per_node = 16;
  EXPECT_THROW(group_of(trays, read_cluster("dgx-h100")), InputError);
}

TEST(NcclTable, TakesTheAlgorithmThatItsEnvironmentForces) {
  const auto forced = [](const char* environment) {
    return parse_table(JsonReader({{"cluster", "dgx-h100"},
                                   {"op", "all_reduce"},
                                   {"n_nodes", 1},
                                   {"gpus_per_node", 8},
                                   {"env", environment},
                                   {"rows", {{{"bytes", 8}, {"time_us", 9}}}}},
                                  "table"))
        .forced;
  };
  EXPECT_EQ(forced("A=1 NCCL_ALGO=NVLSTree"), Algorithm::nvls_tree);
  EXPECT_EQ(forced("NCCL_ALGO=NVLS,Ring"), std::nullopt);
  EXPECT_EQ(forced("NCCL_PROTO=Simple"), std::nullopt);
}

}  // namespace
}  // namespace rehearse::nccl
