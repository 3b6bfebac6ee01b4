// An op lasts at least as long as the host takes to launch its kernels.
#include <gtest/gtest.h>

#include "cost/host_launches.h"
#include "cost/price.h"
#include "machines.h"

namespace rehearse {
namespace {

constexpr double kGemmSeconds = 1e-3;  // of 4096 x 4096 x 4096

Prices priced(double host_launch_s, bool cuda_graph = false, std::int64_t chunks = 1,
              bool launch_blocking = false) {
  Profile profile = test::round_numbers();
  profile.gemm["bf16"] = {{4096, 4096, 4096, kGemmSeconds}, {1024, 4096, 4096, 0.3e-3}};
  profile.host_launch_s = host_launch_s;
  Gemm gemm{4096, 4096, 4096};
  gemm.chunks = chunks;
  Block block;
  block.name = "two and one and two";
  block.forward = {{"a", gemm, {}, {}}, {"b", gemm, {}, {}}};
  block.backward_input = {{"c", gemm, {}, {}}};
  block.backward_weight = {{"d", gemm, {}, {}}, {"e", gemm, {}, {}}};
  Work work;
  work.blocks = {block};
  work.parts = {{{0, 3}}};
  Plan plan;
  plan.cuda_graph = cuda_graph;
  plan.launch_blocking = launch_blocking;
  return price(work, plan, test::dgx_a100(), profile);
}

TEST(Launches, FasterThanTheKernelsCostNothing) {
  const Prices prices = priced(0.9 * kGemmSeconds);
  EXPECT_DOUBLE_EQ(prices.times.stages[0].forward.compute, 6 * kGemmSeconds);
  EXPECT_EQ(prices.launch_bound_s, 0);
}

TEST(Launches, SlowerThanTheKernelsSetThePace) {
  const StageTimes stage = priced(1.5 * kGemmSeconds).times.stages[0];
  EXPECT_DOUBLE_EQ(stage.forward.compute, 9 * kGemmSeconds);
  EXPECT_DOUBLE_EQ(stage.backward_input.compute, 4.5 * kGemmSeconds);
  EXPECT_DOUBLE_EQ(stage.backward_weight.compute, 9 * kGemmSeconds);
  EXPECT_NEAR(stage.side_by_side.compute, 0, 1e-15);
}

// A GEMM for each of 16 experts, as Transformer Engine runs them: eight took the host 267 us.
TEST(Launches, OfProductsOfExpertsAreOneAfterTheOther) {
  const std::vector<Kernel> one = {{"up", Gemm{256, 1536, 2048, 16, true}, {}, {}}};
  std::vector<Kernel> each = one;
  each.front().launches = 16;
  Profile profile;
  EXPECT_EQ(launches_s(profile, each), 0) << "nobody says what a launch takes";
  profile.host_launch_s = 44.8e-6;
  EXPECT_DOUBLE_EQ(launches_s(profile, one), 44.8e-6);
  EXPECT_DOUBLE_EQ(launches_s(profile, each), 44.8e-6 + 15 * 267e-6 / 8);
  each.front().what = Pointwise::quantize_blocks;
  EXPECT_DOUBLE_EQ(launches_s(profile, each), 44.8e-6 + 15 * 9e-6) << "a cast each";
  profile.measurement.emplace();
  EXPECT_DOUBLE_EQ(launches_s(profile, each), 16 * 44.8e-6) << "launched by this program";
}

// Two of attention in one graph, one of experts, one of attention again: three operations.
TEST(Launches, OfAGraphAreOne) {
  Profile profile;
  profile.host_launch_s = 2;
  profile.host_collective_s = 7;
  std::vector<Kernel> kernels(4, Kernel{"a", Pointwise::add, {}, {}});
  for (const std::size_t at : {0, 1, 3}) kernels[at].part = LayerPart::attention;
  kernels[1].what = Collective{};
  kernels[2].part = LayerPart::experts;
  EXPECT_EQ(launches_s(profile, kernels), 2 + 7 + 2 + 2);
  GraphedParts graphed{};
  graphed[static_cast<std::size_t>(LayerPart::attention)] = true;
  EXPECT_EQ(launches_s(profile, kernels, graphed), 2 + 2 + 2);
  graphed[static_cast<std::size_t>(LayerPart::experts)] = true;
  EXPECT_EQ(launches_s(profile, kernels, graphed), 2);
}

// CUDA_LAUNCH_BLOCKING=1: no launch is hidden behind the kernel before.
TEST(Launches, ComeAfterTheKernelBeforeWhereTheHostWaitsForIt) {
  const Prices prices = priced(0.1 * kGemmSeconds, false, 1, true);
  const StageTimes& stage = prices.times.stages[0];
  EXPECT_DOUBLE_EQ(stage.forward.compute, 6 * 1.1 * kGemmSeconds);
  EXPECT_DOUBLE_EQ(stage.backward_input.compute, 3 * 1.1 * kGemmSeconds);
  EXPECT_DOUBLE_EQ(stage.backward_weight.compute, 6 * 1.1 * kGemmSeconds);
  EXPECT_NEAR(stage.side_by_side.compute, 0, 1e-15);
  EXPECT_NEAR(prices.launch_bound_s, 15 * 0.1 * kGemmSeconds, 1e-15);
}

TEST(Launches, WaitedForAreToldApartFromKernels) {
  EXPECT_DOUBLE_EQ(priced(1.5 * kGemmSeconds).launch_bound_s, 15 * 0.5 * kGemmSeconds);
}

TEST(Launches, OfCollectivesTakeTheHostLonger) {
  Profile profile = test::round_numbers();
  profile.gemm["bf16"] = {{4096, 4096, 4096, kGemmSeconds}};
  profile.host_launch_s = 2 * kGemmSeconds;
  profile.host_collective_s = 7 * kGemmSeconds;
  Block block;
  block.name = "product and sum";
  block.tensors = {{"x", TensorRole::input, 1, 2}};
  block.forward = {{"a", Gemm{4096, 4096, 4096}, {}, {}},
                   {"sum", Collective{CollectiveOp::all_reduce, CommGroup::tensor, 2}, {0}, {0}}};
  Work work;
  work.blocks = {block};
  work.parts = {{{0, 3}}};
  Plan plan;
  plan.tp = 8;
  const Prices prices = price(work, plan, test::dgx_a100(), profile);
  EXPECT_DOUBLE_EQ(prices.times.stages[0].forward.total(), 3 * (2 + 7) * kGemmSeconds);
}

// 4 pieces of 1,024 rows take 1.2 ms, which one launch of 1.1 ms does not outlast.
TEST(Launches, OfAllPiecesOfAProductAreOneOfTheFramework) {
  EXPECT_EQ(priced(1.1 * kGemmSeconds, false, 4).launch_bound_s, 0);
}

// Kernels of 1 s, launches of 2 s. The host waits for the first of three. The second begins when it is
// launched, 2 s later, the third at 4 s, and the first of the next round at 6 s. That ends after 7 s, of
// which kernels ran for 3.
TEST(Stalls, LastUntilTheHostIsAheadAgain) {
  Profile profile;
  profile.host_launch_s = 2;
  profile.host_collective_s = 5;
  std::vector<Kernel> kernels(3, Kernel{"a", Pointwise::add, {}, {}});
  EXPECT_EQ(stalls_s(profile, kernels, {1, 1, 1}), 0) << "the host waits for none";
  kernels[0].host_waits = true;
  EXPECT_EQ(stalls_s(profile, kernels, {1, 1, 1}), 6 + 1 - 3);
  EXPECT_EQ(stalls_s(profile, kernels, {1, 9, 1}), 2) << "a long kernel hides the launches after it";
  EXPECT_EQ(stalls_s(profile, kernels, {9, 1, 1}), 4) << "but not those before it";
  kernels[1] = {"b", Collective{}, {}, {}};
  EXPECT_EQ(stalls_s(profile, kernels, {1, 9, 1}), 5);
}

// Kernels of 1 s. The host waits for the third. The graph of the first two comes 2 s later, then they run.
// The third is launched at 4 s: 5 s, of which kernels ran for 3.
TEST(Stalls, AreShorterWhereAGraphComesNext) {
  Profile profile;
  profile.host_launch_s = 2;
  std::vector<Kernel> kernels(3, Kernel{"a", Pointwise::add, {}, {}});
  kernels[2].host_waits = true;
  EXPECT_EQ(stalls_s(profile, kernels, {1, 1, 1}), 6 + 1 - 3);
  kernels[0].part = kernels[1].part = LayerPart::router;
  GraphedParts graphed{};
  graphed[static_cast<std::size_t>(LayerPart::router)] = true;
  EXPECT_EQ(stalls_s(profile, kernels, {1, 1, 1}, graphed), 4 + 1 - 3);
}

TEST(Stalls, AddUpWhereTheHostWaitsSeveralTimes) {
  Profile profile;
  profile.host_launch_s = 2;
  std::vector<Kernel> kernels(2, Kernel{"a", Pointwise::add, {}, {}, {}, true});
  EXPECT_EQ(stalls_s(profile, kernels, {1, 5}), 2 + 2);
}

TEST(Stalls, LengthenThePassUnlessAGraphLaunchesIt) {
  Profile profile = test::round_numbers();
  profile.gemm["bf16"] = {{4096, 4096, 4096, kGemmSeconds}};
  profile.host_launch_s = 0.1 * kGemmSeconds;
  Block block;
  block.forward = {{"a", Gemm{4096, 4096, 4096}, {}, {}, {}, true}};
  Work work;
  work.blocks = {block};
  work.parts = {{{0, 3}}};
  Plan plan;
  const auto forward = [&] {
    return price(work, plan, test::dgx_a100(), profile).times.stages[0].forward.compute;
  };
  EXPECT_DOUBLE_EQ(forward(), 3 * 1.1 * kGemmSeconds);
  plan.launch_blocking = true;
  EXPECT_DOUBLE_EQ(forward(), 3 * 1.1 * kGemmSeconds);
  plan.launch_blocking = false;
  plan.cuda_graph = true;
  EXPECT_DOUBLE_EQ(forward(), 3 * kGemmSeconds);
}

TEST(Launches, OfAGraphCostNothing) {
  EXPECT_DOUBLE_EQ(priced(1.5 * kGemmSeconds, true).times.stages[0].forward.compute, 6 * kGemmSeconds);
}

}  // namespace
}  // namespace rehearse
