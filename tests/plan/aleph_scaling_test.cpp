// Decisions of the recipe of Aleph Alpha's Scaling, and the bytes that its kernels move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/frameworks/traits.h"
#include "plan/recipe.h"
#include "plan/sharding.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kTokens = 32, kHidden = 64, kVocab = 320;

Case scaling(int tp, bool sequence_parallel = false) {
  Case c{llama(2, kHidden, 4, 4, 160, kVocab), Plan()};
  c.plan.framework = Framework::aleph_scaling;
  c.plan.seq = kTokens;
  c.plan.tp = tp;
  apply_framework(c.plan);
  c.plan.sequence_parallel = sequence_parallel;
  return c;
}

Block block_of(const Case& c, const std::string& name) {
  return block_called(make_work(c.model, c.plan), name);
}

std::vector<std::string> names(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

std::size_t collectives(const std::vector<Kernel>& kernels, CollectiveOp op) {
  return static_cast<std::size_t>(std::ranges::count_if(kernels, [op](const Kernel& kernel) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    return collective != nullptr && collective->op == op;
  }));
}

double moved(const Block& block, const std::vector<Kernel>& kernels, const std::string& prefix) {
  double bytes = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.name.starts_with(prefix)) bytes += block.bytes_moved(kernel);
  return bytes;
}

TEST(AlephScaling, KeepsGradientsIn16BitsAndAllReducesThemInFp32AlsoWithZero1) {
  Plan plan = scaling(1).plan;
  EXPECT_EQ(state_bytes(plan).total(), 16);
  EXPECT_EQ(gradient_wire_bytes(plan), 4);
  EXPECT_FALSE(plan.overlap_grad_reduce);
  EXPECT_EQ(bucket_copies(plan), 24.0 / 4);
  plan.zero = 1;
  plan.dp = 4;
  EXPECT_FALSE(scatters_gradients(plan));
}

TEST(AlephScaling, GateAndUpProjectionReduceTheirInputsGradientEach) {
  const Block layer = block_of(scaling(2), "layer");
  EXPECT_THAT(names(layer.forward), Contains("mlp_gate"));
  EXPECT_EQ(collectives(layer.forward, CollectiveOp::all_reduce), 2U);
  EXPECT_EQ(collectives(layer.backward_input, CollectiveOp::all_reduce), 3U);
}

TEST(AlephScaling, SequenceParallelRanksGatherBothProjectionsInputOnceAndKeepIt) {
  const Block layer = block_of(scaling(2, true), "layer");
  EXPECT_EQ(collectives(layer.forward, CollectiveOp::all_gather), 2U);
  EXPECT_EQ(collectives(layer.forward, CollectiveOp::reduce_scatter), 2U);
  EXPECT_EQ(collectives(layer.backward_input, CollectiveOp::reduce_scatter), 2U);
  EXPECT_EQ(collectives(layer.backward_input, CollectiveOp::all_gather), 2U);
  EXPECT_EQ(collectives(layer.backward_weight, CollectiveOp::all_gather), 0U);
}

TEST(AlephScaling, SplitProjectionsMultiplyAsMuchAsOne) {
  Case one = scaling(2);
  one.plan.framework = Framework::megatron_core;
  const auto flops = [](const Case& c) { return count_flops(make_work(c.model, c.plan), c.plan).model(); };
  EXPECT_DOUBLE_EQ(flops(scaling(2)), flops(one));
}

// For whole rows: 8 bytes a logit of fp32 copy and softmax, independent of the number of ranks, and the
// copies of the gather.
TEST(AlephScaling, EachRankTakesTheLossOfAllLogits) {
  const Block alone = block_of(scaling(1), "head"), of_two = block_of(scaling(2), "head");
  EXPECT_EQ(moved(alone, alone.forward, "log_softmax"), moved(of_two, of_two.forward, "log_softmax"));
  EXPECT_EQ(moved(of_two, of_two.forward, "logits_join"), 2 * 2 * kTokens * kVocab);
  EXPECT_EQ(collectives(of_two.forward, CollectiveOp::all_gather), 1U);
  EXPECT_EQ(collectives(alone.forward, CollectiveOp::all_gather), 0U);
  EXPECT_THAT(names(of_two.forward), Contains("accuracy"));
}

TEST(AlephScaling, FullRecomputeRunsEmbeddingAndHeadAgainButNotTheLoss) {
  Case c = scaling(2);
  EXPECT_THAT(block_of(c, "head").recompute, IsEmpty());
  c.plan.recompute = Recompute::full;
  const std::vector<std::string> head = names(block_of(c, "head").recompute);
  EXPECT_THAT(head, Contains("logits"));
  EXPECT_THAT(head, Contains("logits_all_gather"));
  EXPECT_THAT(head, Not(Contains("log_softmax")));
  EXPECT_THAT(names(block_of(c, "embedding").recompute), Contains("words_all_reduce"));
}

// Halves of a tensor count as read whole.
TEST(AlephScaling, RotatesInHalves) {
  const Block layer = block_of(scaling(1), "layer");
  const double elements = kTokens * kHidden;
  const auto of = [&](const std::vector<Kernel>& kernels) {
    double bytes = 0;
    for (const char* what :
         {"negated", "turned", "cosine", "sine", "rotated", "first_half", "second_half", "halves"})
      bytes += moved(layer, kernels, std::string("query_") + what);
    return bytes;
  };
  EXPECT_EQ(of(layer.forward), 22 * elements);
  EXPECT_EQ(of(layer.backward_input), 30 * elements);
}

TEST(AlephScaling, TheHostWaitsForTheLongestSequenceBeforeFlashAttention) {
  const auto waits = [](const Case& c) {
    const Block layer = block_of(c, "layer");
    return std::ranges::count_if(layer.forward, [](const Kernel& kernel) { return kernel.host_waits; });
  };
  Case c = scaling(1);
  EXPECT_EQ(waits(c), 1);
  c.plan.fused_attention = false;
  EXPECT_EQ(waits(c), 0);
}

}  // namespace
}  // namespace rehearse
