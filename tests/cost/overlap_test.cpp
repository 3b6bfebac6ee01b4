// How much of a collective does a concurrent kernel hide?
#include <gtest/gtest.h>

#include <functional>

#include "cost/collectives.h"
#include "cost/price.h"
#include "machines.h"
#include "model/read.h"

namespace rehearse {
namespace {

constexpr double kGemmSeconds = 1e-3;  // of 4096 x 4096 x 4096

Profile profile() {
  Profile p = test::round_numbers();
  p.gemm["bf16"] = {{4096, 4096, 4096, kGemmSeconds}, {1024, 4096, 4096, 0.3e-3}};
  p.stream["copy"] = {{1e9, 1e12}};
  return p;
}

Plan eight_ranks() {
  Plan plan;
  plan.tp = 8;
  return plan;
}

double alone(const Collective& c) {
  return collective_time(profile(), test::dgx_a100(), c.op, c.bytes, {8, 1, 1}).total();
}

Collective all_reduce(double bytes) {
  return {CollectiveOp::all_reduce, CommGroup::tensor, bytes};
}

// So that a collective takes nothing but multiprocessors (contention_test.cpp).
Cluster unlimited_memory() {
  Cluster cluster = test::dgx_a100();
  cluster.gpu.memory_bandwidth = 1e30;
  return cluster;
}

StageTimes priced(const Block& block, const Cluster& cluster = unlimited_memory()) {
  Work work;
  work.blocks = {block};
  work.parts = {{{0, 1}}};
  return price(work, eight_ranks(), cluster, profile()).times.stages[0];
}

// The GEMM of a weight, and kernels concurrent with such GEMMs.
Gemm product_of(TensorId weight) {
  Gemm gemm{4096, 4096, 4096};
  gemm.weight = weight;
  return gemm;
}

Overlap beside(std::vector<TensorId> weights, std::int64_t exposed_calls = 0) {
  return {.weights = std::move(weights), .exposed_calls = exposed_calls};
}

Block empty_block() {
  Block block;
  block.tensors = {{"x", TensorRole::input, 1e6, 2}};
  return block;
}

TEST(Overlap, HidesAShortCollectiveWhollyAndOfALongOneTheKernelsTime) {
  for (const double bytes : {1e6, 1e9}) {
    Block block = empty_block();
    block.forward = {{"gemm", product_of(1), {0}, {0}}, {"sum", all_reduce(bytes), {0}, {0}, beside({1})}};
    EXPECT_NEAR(priced(block).forward.tp, std::max(0.0, alone(all_reduce(bytes)) - kGemmSeconds), 1e-12);
  }
}

TEST(Overlap, AcrossTheHalvesOfTheBackwardPassCountsInTheWholeOnly) {
  Block block = empty_block();
  block.backward_input = {{"gradient", product_of(1), {0}, {0}},
                          {"sum", all_reduce(1e9), {0}, {0}, beside({2})}};
  block.backward_weight = {{"weights", product_of(2), {0}, {0}}};
  const StageTimes times = priced(block);
  EXPECT_DOUBLE_EQ(times.backward_input.tp, alone(all_reduce(1e9)));
  EXPECT_DOUBLE_EQ(times.side_by_side.tp, -kGemmSeconds);
  EXPECT_EQ(times.side_by_side.compute, 0);
}

TEST(Overlap, OfChunksLeavesTheFirstOrLastOneExposed) {
  Block block = empty_block();
  Gemm gemm = product_of(1);
  gemm.chunks = 4;
  Collective quarter{CollectiveOp::reduce_scatter, CommGroup::tensor, 25e6, 4};
  block.forward = {{"gemm", gemm, {0}, {0}}, {"scatter", quarter, {0}, {0}, beside({1}, 1)}};
  const StageTimes times = priced(block);
  const double one = alone({CollectiveOp::reduce_scatter, CommGroup::tensor, 25e6});
  ASSERT_LT(one, 0.3e-3);
  EXPECT_NEAR(times.forward.tp, one, 1e-12);
  EXPECT_NEAR(times.forward.compute, 4 * 0.3e-3, 1e-12);  // smaller GEMMs run slower
}

TEST(Overlap, OfChunksCostsThemTheMultiprocessorsOfTheScatter) {
  Cluster cluster = unlimited_memory();
  cluster.gpu.multiprocessors = 128;  // 16 of which scatter
  Block block = empty_block();
  Gemm gemm = product_of(1);
  gemm.chunks = 4;
  Collective quarter{CollectiveOp::reduce_scatter, CommGroup::tensor, 25e6, 4};
  block.forward = {{"gemm", gemm, {0}, {0}}, {"scatter", quarter, {0}, {0}, beside({1}, 1)}};
  const double one = alone({CollectiveOp::reduce_scatter, CommGroup::tensor, 25e6});
  EXPECT_NEAR(priced(block, cluster).forward.tp, one + 3 * one / 8, 1e-12);
}

TEST(Overlap, OfChunksThatLeaveMultiprocessorsCostsTheWholeProductThese) {
  Cluster cluster = unlimited_memory();
  cluster.gpu.multiprocessors = 128;
  Block block = empty_block();
  Gemm gemm = product_of(1);
  gemm.chunks = 4;
  gemm.sms_left = 32;
  Collective quarter{CollectiveOp::reduce_scatter, CommGroup::tensor, 25e6, 4};
  block.forward = {{"gemm", gemm, {0}, {0}}, {"scatter", quarter, {0}, {0}, beside({1}, 1)}};
  const StageTimes times = priced(block, cluster);
  EXPECT_NEAR(times.forward.compute, 4 * 0.3e-3 / 0.75, 1e-12);
  EXPECT_NEAR(times.forward.tp, alone({CollectiveOp::reduce_scatter, CommGroup::tensor, 25e6}), 1e-12);
}

// NeMo's userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192.
TEST(Overlap, LeavesMultiprocessorsOfTheForwardRowParallelProductsAlone) {
  Plan plan = eight_ranks();
  plan.sequence_parallel = plan.tp_comm_overlap = true;
  plan.tp_comm_proj_sms = 24;
  plan.tp_comm_fc2_sms = 16;
  const Work work = make_work(read_model("llama3-8b"), plan);
  for (const Block& block : work.blocks) {
    for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight}) {
      for (const Kernel& kernel : *kernels) {
        const auto* gemm = std::get_if<Gemm>(&kernel.what);
        if (gemm == nullptr) continue;
        EXPECT_EQ(gemm->sms_left, kernel.name == "projection" ? 24
                                  : kernel.name == "mlp_down" ? 16
                                                              : 0)
            << kernel.name;
      }
    }
  }
}

// Each call goes beside a chunk of either.
TEST(Overlap, OfARingBesideTwoProductsHasTheChunksOfBoth) {
  Block block = empty_block();
  Gemm gemm = product_of(1);
  gemm.chunks = 4;
  Collective send{CollectiveOp::send_receive, CommGroup::tensor, 300e6, 3};
  Gemm other = gemm;
  other.weight = 2;
  block.forward = {
      {"send", send, {0}, {0}, beside({1, 2})}, {"query", gemm, {0}, {0}}, {"key", other, {0}, {0}}};
  const double one = send_time(profile(), test::dgx_a100(), 300e6, false).total();
  ASSERT_GT(one, 0.6e-3);
  EXPECT_NEAR(priced(block).forward.tp, 3 * (one - 2 * 0.3e-3), 1e-12);
}

TEST(Overlap, OfARingExposesWhatIsLongerThanItsStep) {
  Block block = empty_block();
  Gemm gemm = product_of(1);
  gemm.chunks = 4;
  Collective send{CollectiveOp::send_receive, CommGroup::tensor, 300e6, 3};
  block.forward = {{"send", send, {0}, {0}, beside({1})}, {"gemm", gemm, {0}, {0}}};
  const double one = send_time(profile(), test::dgx_a100(), 300e6, false).total();
  ASSERT_GT(one, 0.3e-3);
  EXPECT_NEAR(priced(block).forward.tp, 3 * (one - 0.3e-3), 1e-12);
}

OpTimes llama_times(const Plan& plan) {
  const Model model = read_model("llama3-8b");
  const Cluster cluster = read_cluster("dgx-h100");
  return price(make_work(model, plan), plan, cluster, read_profile("h100-sxm")).times;
}

double whole_backward(const StageTimes& stage) {
  return stage.backward_input.total() + stage.backward_weight.total() + stage.side_by_side.total();
}

void rename(Work& work) {
  for (Block& block : work.blocks)
    for (auto* kernels : {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
      for (Kernel& kernel : *kernels) kernel.name = "x" + kernel.name + "x";
}

TEST(Prices, AreThoseOfTheTypesWhateverKernelsAreCalled) {
  const auto with = [](const std::function<void(Plan&)>& set) {
    Plan plan = eight_ranks();
    plan.seq = 8192;
    plan.sequence_parallel = true;
    set(plan);
    return plan;
  };
  for (const Plan& plan : {with([](Plan&) {}), with([](Plan& of) { of.tp_comm_overlap = true; }),
                           with([](Plan& of) { of.recompute = Recompute::full; }), with([](Plan& of) {
                             of.tp = 1;
                             of.sequence_parallel = false;
                             of.cp = 8;
                           }),
                           with([](Plan& of) {
                             of.framework = Framework::torchtitan;
                             of.tp_comm_overlap = true;
                             of.recompute = Recompute::op;
                           })}) {
    const Cluster cluster = read_cluster("dgx-h100");
    const Profile h100 = read_profile("h100-sxm");
    Work work = make_work(read_model("llama3-8b"), plan);
    const StageTimes expected = price(work, plan, cluster, h100).times.stages[0];
    rename(work);
    const StageTimes found = price(work, plan, cluster, h100).times.stages[0];
    EXPECT_EQ(found.forward.total(), expected.forward.total());
    EXPECT_EQ(whole_backward(found), whole_backward(expected));
  }
}

TEST(Overlap, OfTheBackwardPassSavesTimeWithAndWithoutSequenceParallelism) {
  for (const bool sequence_parallel : {false, true}) {
    Plan plan = eight_ranks();
    plan.seq = 8192;
    plan.sequence_parallel = sequence_parallel;
    const OpTimes with = llama_times(plan);
    plan.tp_backward_overlap = false;
    const OpTimes without = llama_times(plan);
    EXPECT_EQ(without.stages[0].side_by_side.total(), 0);
    EXPECT_LT(whole_backward(with.stages[0]), whole_backward(without.stages[0]));
    EXPECT_EQ(with.stages[0].forward.total(), without.stages[0].forward.total());
  }
}

TEST(Overlap, OfChunksExposesLessAndComputesMore) {
  Plan plan = eight_ranks();
  plan.seq = 8192;
  plan.sequence_parallel = true;
  const TimeParts whole = llama_times(plan).stages[0].forward;
  plan.tp_comm_overlap = true;
  const TimeParts chunks = llama_times(plan).stages[0].forward;
  EXPECT_LT(chunks.tp, whole.tp);
  EXPECT_GT(chunks.compute, whole.compute);
}

// 32 layers of 8 ranks, each of which sends its keys and values of 8 heads of 128 seven times.
double ring_s(const Plan& plan) {
  const double bytes = 2 * 2 * 8 * 128 * static_cast<double>(plan.seq) / 8;
  return 32 * 7 *
         collective_time(read_profile("h100-sxm"), read_cluster("dgx-h100"), CollectiveOp::send_receive,
                         bytes, {8, 1, 1})
             .total();
}

TEST(Overlap, OfRingAttentionHidesLongSequencesAndNotShortOnes) {
  Plan plan;
  plan.cp = 8;
  plan.seq = 131072;
  const auto forward = [&plan] { return llama_times(plan).stages[0].forward; };
  EXPECT_LT(forward().cp / forward().total(), 0.01);  // memory bandwidth that the attention beside it loses
  EXPECT_LT(forward().cp / ring_s(plan), 0.25);
  plan.seq = 2048;
  EXPECT_GT(forward().cp / ring_s(plan), 0.4);
  EXPECT_GT(forward().cp / forward().total(), 0.03);
  plan.cp_exchange = ContextExchange::gather;
  plan.seq = 131072;
  EXPECT_GT(forward().cp, 0);
}

TEST(ExpertPrices, OfADispatchAreOneAllToAllOfTheExpertGroup) {
  const Model model = read_model("mixtral-8x7b");
  const Cluster cluster = read_cluster("dgx-h100");
  const Profile h100 = read_profile("h100-sxm");
  Plan plan;
  plan.ep = plan.dp = 8;
  plan.seq = 4096;
  const OpTimes times = price(make_work(model, plan), plan, cluster, h100).times;
  const auto all_to_all = [&](double bytes) {
    return collective_time(h100, cluster, CollectiveOp::all_to_all, bytes, {8, 1, 1}).total();
  };
  const double rows = 2 * 4096;
  EXPECT_NEAR(times.stages[0].forward.ep, 32 * (2 * all_to_all(rows * 4096 * 2) + all_to_all(rows * 4)),
              1e-9);
}

}  // namespace
}  // namespace rehearse
