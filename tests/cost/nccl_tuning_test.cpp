// NCCL's own formulas, by hand.
#include "cost/nccl/tuning.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cost/nccl/read_model.h"

namespace rehearse::nccl {
namespace {

const Constants& constants() {
  static const Model model = read_model(kDefaultModel);
  return model.constants;
}

Graph graph(const std::string& name, const GroupShape& group) {
  static std::map<std::string, Cluster> clusters;
  return graph_of(constants(), clusters.try_emplace(name, read_cluster(name)).first->second, group);
}

Choice choice(const std::string& name, const GroupShape& group, CollectiveOp op, double bytes,
              std::optional<Algorithm> forced = {}) {
  return choose(constants(), graph(name, group), op, bytes, forced);
}

constexpr GroupShape kNode{8, 1, 1}, kFourNodes{32, 4, 1};

TEST(NcclTuning, SmallAllReducesTakeTheLlRingWithBaseAndFourteenSteps) {
  const Choice small = choice("dgx-a100-80gb", kNode, CollectiveOp::all_reduce, 1024);
  EXPECT_EQ(small.algorithm, Algorithm::ring);
  EXPECT_EQ(small.protocol, Protocol::ll);
  EXPECT_NEAR(small.latency_s, 6.6e-6 + 14 * 0.6e-6, 1e-12);
}

TEST(NcclTuning, LargeAllReducesTakeTheSimpleRingOnA100AndTheSwitchesOnH100) {
  const Choice ring = choice("dgx-a100-80gb", kNode, CollectiveOp::all_reduce, 1e10);
  EXPECT_EQ(ring.algorithm, Algorithm::ring);
  EXPECT_EQ(ring.protocol, Protocol::simple);
  EXPECT_NEAR(ring.rate * 2 * 7 / 8, 240e9, 1);  // bus bandwidth
  const Choice nvls = choice("dgx-h100", kNode, CollectiveOp::all_reduce, 1e10);
  EXPECT_EQ(nvls.algorithm, Algorithm::nvls);
  EXPECT_NEAR(nvls.rate * 2 * 7 / 8, 8 * 40e9 * 0.85 * 7 / 8 * 2, 1);  // 476 GB/s
  EXPECT_NEAR(nvls.latency_s, 25e-6, 1e-12);
}

// nccl-tests on H200: NVLS pays from five GPUs on (stas00/ml-engineering, network).
TEST(NcclTuning, SwitchesPayFromFiveGpusOn) {
  EXPECT_EQ(choice("dgx-h200", {4, 1, 1}, CollectiveOp::all_reduce, 8e9).algorithm, Algorithm::ring);
  EXPECT_EQ(choice("dgx-h200", {5, 1, 1}, CollectiveOp::all_reduce, 8e9).algorithm, Algorithm::nvls);
}

TEST(NcclTuning, AllGatherStaysOnTheRingBesideSwitches) {
  const Choice large = choice("dgx-h100", kNode, CollectiveOp::all_gather, 1e10);
  EXPECT_EQ(large.algorithm, Algorithm::ring);
  EXPECT_NEAR(large.rate * 7 / 8, 360e9, 1);
}

TEST(NcclTuning, TreesBeatRingsForSmallAllReducesOverManyNodes) {
  const Choice small = choice("dgx-a100-80gb", {128, 16, 1}, CollectiveOp::all_reduce, 1024);
  EXPECT_EQ(small.algorithm, Algorithm::tree);
  EXPECT_NEAR(small.latency_s, 6.8e-6 + 2 * (7 * 1.0e-6 + 4 * 5e-6),
              1e-12);  // net overhead binds in the node
  EXPECT_EQ(choice("dgx-a100-80gb", {128, 16, 1}, CollectiveOp::all_reduce, 4e9).algorithm, Algorithm::ring);
}

// Two nodes send the buffer out once, more twice; the caps of a channel are 57.7 and 45.5 GB/s.
TEST(NcclTuning, NvlsTreeOverNodesIsBoundByItsChannelsOrNics) {
  EXPECT_NEAR(choice("dgx-h100", {16, 2, 1}, CollectiveOp::all_reduce, 1e10).rate * 2 * 15 / 16, 8 * 57.7e9,
              1e6);
  EXPECT_NEAR(
      choice("dgx-h100", kFourNodes, CollectiveOp::all_reduce, 1e10, Algorithm::nvls_tree).rate * 2 * 31 / 32,
      8 * 45.5e9, 1e6);
  EXPECT_NEAR(choice("dgx-h100", {4, 2, 1}, CollectiveOp::all_reduce, 1e10).rate, 2 * 48e9, 1e6);
}

TEST(NcclTuning, ForcedAlgorithmsAreTakenWhereTheyCanRun) {
  EXPECT_EQ(choice("dgx-h100", kFourNodes, CollectiveOp::all_reduce, 1024, Algorithm::nvls_tree).algorithm,
            Algorithm::nvls_tree);
  EXPECT_EQ(choice("dgx-a100-80gb", kNode, CollectiveOp::broadcast, 1024, Algorithm::tree).algorithm,
            Algorithm::ring);
}

TEST(NcclTuning, BroadcastTakesOneStepWhateverTheGroup) {
  const double few = choice("abci-a100", {16, 2, 2}, CollectiveOp::broadcast, 64).latency_s;
  EXPECT_DOUBLE_EQ(few, choice("abci-a100", {128, 16, 2}, CollectiveOp::broadcast, 64).latency_s);
}

TEST(NcclTuning, SlowerNetworksAddTheirLatencyToEachStep) {
  const double ib = choice("dgx-h100", {2, 2, 1}, CollectiveOp::all_reduce, 8, Algorithm::ring).latency_s;
  const double efa = choice("p5.48xlarge", {2, 2, 1}, CollectiveOp::all_reduce, 8, Algorithm::ring).latency_s;
  EXPECT_NEAR(efa - ib, 2 * (20e-6 - 3.3e-6), 1e-12);
}

TEST(NcclTuning, AllToAllSendsRemoteSharesThroughTheNicBesideLocalOnes) {
  const Choice two = choice("dgx-h100", {16, 2, 1}, CollectiveOp::all_to_all, 16e9);
  EXPECT_NEAR(16e9 / two.rate, 8e9 / 48e9, 1e-9);
}

RC_GTEST_PROP(NcclTuning, BelievesTheLeastTimeOfAllThatCanRun, ()) {
  const GroupShape group =
      *rc::gen::element(GroupShape{2, 1, 1}, kNode, GroupShape{16, 2, 1}, kFourNodes, GroupShape{8, 8, 1});
  const std::string name =
      *rc::gen::element(std::string("dgx-a100-80gb"), std::string("dgx-h100"), std::string("dgx-b200"));
  const auto op =
      *rc::gen::element(CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::broadcast);
  const double bytes = std::exp2(*rc::gen::inRange(0, 35));
  const auto believed = [&](std::optional<Algorithm> forced) {
    const Choice found = choice(name, group, op, bytes, forced);
    return found.latency_s + bytes / found.believed_rate;
  };
  const double best = believed({});
  for (std::size_t a = 0; a < kAlgorithms; ++a)
    RC_ASSERT(best <= believed(static_cast<Algorithm>(a)) * (1 + 1e-12));
}

}  // namespace
}  // namespace rehearse::nccl
