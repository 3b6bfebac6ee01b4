#include "plan/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> names(const std::vector<Kernel>& kernels) {
  std::vector<std::string> result;
  for (const Kernel& kernel : kernels) result.push_back(kernel.name);
  return result;
}

TEST(Work, OfALlamaLayerReadsAsInThePaper) {
  const Work work = make_work(llama(2, 64, 8, 2, 128, 256), {});
  const Block& layer = block_called(work, "layer");
  EXPECT_THAT(names(layer.forward),
              testing::ElementsAre("attention_norm", "qkv", "query_copy", "value_copy", "rotary", "attention",
                                   "projection", "attention_residual", "mlp_norm", "mlp_up", "activation",
                                   "mlp_down", "mlp_residual"));
  EXPECT_THAT(names(layer.backward_weight),
              testing::ElementsAre("mlp_down_weight_gradient", "mlp_up_weight_gradient",
                                   "mlp_norm_weight_gradient", "projection_weight_gradient",
                                   "qkv_weight_gradient", "attention_norm_weight_gradient"));
  EXPECT_TRUE(layer.recompute.empty());
}

TEST(Work, PutsEmbeddingFirstAndHeadLast) {
  Plan plan;
  plan.pp = 3;
  plan.layers_per_stage = {1, 3, 0};
  const Work work = make_work(llama(4, 64, 8, 8, 128, 256), plan);
  ASSERT_EQ(work.parts.size(), 3u);
  const auto describe = [&](std::size_t stage) {
    std::string text;
    for (const Repeated& repeated : work.parts[stage]) {
      text += work.blocks[std::size_t(repeated.block)].name + " x" + std::to_string(repeated.repeats) + " ";
    }
    return text;
  };
  EXPECT_EQ(describe(0), "embedding x1 layer x1 ");
  EXPECT_EQ(describe(1), "layer x3 ");
  EXPECT_EQ(describe(2), "head x1 ");
}

RC_GTEST_PROP(Work, PassesRowsOfHiddenFromStageToStage, ()) {
  const Case c = any_case();
  const double bytes = c.plan.precision == Precision::fp32 ? 4 : 2;
  const double whole = double(c.plan.seq * c.plan.micro_batch * c.model.hidden) * bytes;
  RC_ASSERT(make_work(c.model, c.plan).boundary_bytes ==
            (c.plan.sequence_parallel ? whole / c.plan.tp : whole));
}

TEST(Work, MovesOfATableOnlyTheRowsLookedUp) {
  Plan plan;
  plan.seq = 32;
  const Work work = make_work(llama(2, 64, 8, 8, 128, 1000), plan);
  const Block& embedding = block_called(work, "embedding");
  EXPECT_EQ(embedding.bytes_moved(embedding.forward.front()), 2 * 2.0 * 32 * 64 + 8 * 32);
}

TEST(Work, OfTheOptimizerReadsSixteenBytesAParameterAndWritesFourteen) {
  Block scratch;
  const Kernel adam = optimizer_kernels(1000, {}, scratch).back();
  EXPECT_EQ(scratch.bytes(adam.reads), 16'000);
  EXPECT_EQ(scratch.bytes(adam.writes), 14'000);
  EXPECT_EQ(scratch.parameters(), 1000);
}

TEST(Work, OfTheOptimizerInFp32HasNoSecondCopyOfTheWeights) {
  Plan plan;
  plan.precision = Precision::fp32;
  Block scratch;
  const Kernel adam = optimizer_kernels(1000, plan, scratch).back();
  EXPECT_EQ(scratch.bytes(adam.reads), 16'000);
  EXPECT_EQ(scratch.bytes(adam.writes), 12'000);
}

TEST(Work, OfClippingReadsEveryGradientOnceMoreAndSumsOneNumberOverAllRanks) {
  Plan plan;
  plan.clip_grad = 1;
  Block scratch;
  EXPECT_EQ(optimizer_kernels(1000, plan, scratch).size(), 3U);
  plan.tp = plan.dp = 2;
  scratch = {};
  const std::vector<Kernel> kernels = optimizer_kernels(1000, plan, scratch);
  ASSERT_EQ(kernels.size(), 4U);
  EXPECT_EQ(scratch.bytes(kernels[0].reads), 4000);
  EXPECT_EQ(scratch.bytes(kernels[0].writes), 4);
  const auto& sum = std::get<Collective>(kernels[1].what);
  EXPECT_EQ(sum.group, CommGroup::world);
  EXPECT_EQ(sum.bytes, 4);
  EXPECT_EQ(kernels[3].reads.in(Slot::scale), kernels[2].writes.front());
}

}  // namespace
}  // namespace rehearse
