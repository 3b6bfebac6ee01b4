// Activation bytes against the closed forms of Korthikanti et al. 2022, section 4. The bytes follow from the
// kernel lists, so equality proves the lists.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "work_case.h"

namespace rehearse {
namespace {

struct Symbols {
  double s, b, h, a, t, v;
};

Symbols symbols(const Case& c) {
  return {double(c.plan.seq),    double(c.plan.micro_batch), double(c.model.hidden),
          double(c.model.heads), double(c.plan.tp),          double(c.model.vocab)};
}

double layer_bytes(const Case& c) {
  return saved_bytes(block_called(make_work(c.model, c.plan), "layer"));
}

RC_GTEST_PROP(ActivationBytes, OfALayerOnOneRankAreEquation1, ()) {
  Case c = any_gpt();
  c.plan.tp = 1;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 34 * s * b * h + 5 * a * s * s * b);
}

RC_GTEST_PROP(ActivationBytes, WithTensorParallelismAreEquation2, ()) {
  const Case c = any_gpt();
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 10 * s * b * h + 24 * s * b * h / t + 5 * a * s * s * b / t);
}

RC_GTEST_PROP(ActivationBytes, WithSequenceParallelismAreEquation4, ()) {
  Case c = any_gpt();
  c.plan.sequence_parallel = true;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == (34 * s * b * h + 5 * a * s * s * b) / t);
}

RC_GTEST_PROP(ActivationBytes, WithSelectiveRecomputeAndSequenceParallelismAreEquation6, ()) {
  Case c = any_gpt();
  c.plan.sequence_parallel = true;
  c.plan.recompute = Recompute::selective;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 34 * s * b * h / t);
}

RC_GTEST_PROP(ActivationBytes, WithSelectiveRecomputeAloneAreTable2, ()) {
  Case c = any_gpt();
  c.plan.recompute = Recompute::selective;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 10 * s * b * h + 24 * s * b * h / t);
}

RC_GTEST_PROP(ActivationBytes, WithFullRecomputeAreTheInput, ()) {
  Case c = any_gpt();
  c.plan.recompute = Recompute::full;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 2 * s * b * h);
}

RC_GTEST_PROP(ActivationBytes, WithFp8KeepOneByteOfEachLinearsInput, ()) {
  Case c = any_gpt();
  c.plan.sequence_parallel = true;
  c.plan.precision = Precision::fp8;
  const auto [s, b, h, a, t, v] = symbols(c);
  // Seven of the 34 bytes: one for each of the inputs of qkv, projection and first linear layer, and four for
  // the input of the second.
  RC_ASSERT(layer_bytes(c) == (27 * s * b * h + 5 * a * s * s * b) / t);
}

RC_GTEST_PROP(ActivationBytes, OutsideTheLayersAreThoseOfSection43, ()) {
  Case c = any_gpt();
  c.plan.sequence_parallel = true;
  const auto [s, b, h, a, t, v] = symbols(c);
  const Work work = make_work(c.model, c.plan);
  RC_ASSERT(saved_bytes(block_called(work, "embedding")) == s * b * h / t);
  RC_ASSERT(saved_bytes(block_called(work, "head")) == 4 * s * b * h / t + 4 * s * b * v / t);
}

RC_GTEST_PROP(ActivationBytes, OfAStageAreThoseOfItsBlocks, ()) {
  const Case c = any_case();
  const Work work = make_work(c.model, c.plan);
  const double layers = double(c.model.layers) / c.plan.pp;
  double expected = 0;
  for (int stage = 0; stage < c.plan.pp; ++stage) expected += layers * layer_bytes(c);
  expected += saved_bytes(block_called(work, "embedding")) + saved_bytes(block_called(work, "head"));
  double sum = 0;
  for (int stage = 0; stage < c.plan.pp; ++stage) sum += work.saved_bytes(stage);
  RC_ASSERT(sum == expected);
}

// Q, K, V and output 8sbh and log-sum-exp of 4 bytes per row replace 8sbh + 5as^2b.
RC_GTEST_PROP(ActivationBytes, OfFusedAttentionHaveNoTermQuadraticInTheSequence, ()) {
  Case c = any_gpt();
  c.plan.fused_attention = true;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 10 * s * b * h + 24 * s * b * h / t + 4 * a * s * b / t);
}

RC_GTEST_PROP(ActivationBytes, OfFusedAttentionUnderSelectiveRecomputeLoseOnlyTheLogSumExp, ()) {
  Case c = any_gpt();
  c.plan.fused_attention = true;
  c.plan.recompute = Recompute::selective;
  const auto [s, b, h, a, t, v] = symbols(c);
  RC_ASSERT(layer_bytes(c) == 10 * s * b * h + 24 * s * b * h / t);
}

// Norm inputs 4sbh, QKV and MLP inputs 4sbh, q and output 4sbh, k and v 4sbh kv/a; gate, up and gate times up
// 6sbf.
TEST(ActivationBytes, OfALlamaLayerFollowGroupedQueriesAndTheGatedMlp) {
  const Model model = llama(32, 4096, 32, 8, 14336, 128256);
  Plan plan;
  plan.seq = 8192;
  const double s = 8192, h = 4096, f = 14336, kv = 1024;
  const double layer = saved_bytes(block_called(make_work(model, plan), "layer"));
  EXPECT_EQ(layer, 12 * s * h + 4 * s * kv + 6 * s * f + 4 * 32 * s);
}

TEST(ActivationBytes, OfAParallelResidualLackTheSumBetweenItsBranches) {
  Case c{gpt(2, 64, 4, 128, 32), {}};
  c.plan.seq = 32;
  c.plan.fused_attention = false;
  const double in_series = layer_bytes(c);
  c.model.parallel_residual = true;
  EXPECT_EQ(layer_bytes(c), in_series - 2.0 * 32 * 64);
}

TEST(ActivationBytes, OfGpt3AreThePublishedOnes) {
  Case c{gpt(96, 12288, 96, 51200, 2048), {}};
  c.plan.fused_attention = false;
  c.plan.tp = 8;
  c.plan.sequence_parallel = true;
  // Section 5: with 5as/h = 80, 34 of 114 parts remain. Selective recompute saves 70% of the memory.
  const double stored = layer_bytes(c);
  c.plan.recompute = Recompute::selective;
  EXPECT_DOUBLE_EQ(layer_bytes(c) / stored, 34.0 / 114.0);
}

}  // namespace
}  // namespace rehearse
