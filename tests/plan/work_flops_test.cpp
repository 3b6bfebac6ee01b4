#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "work_case.h"

namespace rehearse {
namespace {

double gemm_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += std::holds_alternative<Gemm>(kernel.what) ? flops(kernel) : 0;
  return sum;
}

double attention_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    sum += std::holds_alternative<Attention>(kernel.what) ? flops(kernel) : 0;
  }
  return sum;
}

// C l h^2 B s (1 + s/(6h) + V/(D l h)) multiplied out: C B s l h^2 + C/6 B s^2 l h + C/D B s h V.
double narayanan(const Case& c, double factor, double vocabulary_divisor) {
  const double B = double(c.plan.micro_batch), s = double(c.plan.seq), l = double(c.model.layers),
               h = double(c.model.hidden), V = double(c.model.vocab);
  return factor * B * s * l * h * h + factor / 6 * B * s * s * l * h +
         factor / vocabulary_divisor * B * s * h * V;
}

RC_GTEST_PROP(Flops, WithFullRecomputeAreEquation3OfNarayanan2021, ()) {
  Case c = any_gpt();
  c.plan.recompute = Recompute::full;
  RC_ASSERT(count_flops(make_work(c.model, c.plan), c.plan).hardware() == narayanan(c, 96, 16));
}

RC_GTEST_PROP(Flops, OfTheModelAreThatEquationWithoutTheSecondForward, ()) {
  Case c = any_gpt();
  c.plan.recompute = *rc::gen::elementOf(kRecomputes);
  c.plan.fused_attention = *rc::gen::arbitrary<bool>();
  c.plan.sequence_parallel = *rc::gen::arbitrary<bool>();
  RC_ASSERT(count_flops(make_work(c.model, c.plan), c.plan).model() == narayanan(c, 72, 12));
}

RC_GTEST_PROP(Flops, OfSelectiveRecomputeAreTheTwoProductsOfTheCore, ()) {
  Case c = any_gpt();
  c.plan.recompute = Recompute::selective;
  c.plan.fused_attention = *rc::gen::arbitrary<bool>();
  const double B = double(c.plan.micro_batch), s = double(c.plan.seq), l = double(c.model.layers),
               h = double(c.model.hidden);
  RC_ASSERT(count_flops(make_work(c.model, c.plan), c.plan).recompute == 4 * B * s * s * l * h);
}

RC_GTEST_PROP(Flops, OfBackwardGemmsAreTwiceThoseOfTheForward, ()) {
  const Case c = any_case();
  for (const Block& block : make_work(c.model, c.plan).blocks) {
    RC_ASSERT(gemm_flops(block.backward_input) + gemm_flops(block.backward_weight) ==
              2 * gemm_flops(block.forward));
  }
}

RC_GTEST_PROP(Flops, OfFusedAttentionsBackwardAreFiveProductsAgainstTwo, ()) {
  Case c = any_case();
  c.plan.fused_attention = true;
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "layer");
  RC_ASSERT(attention_flops(layer.forward) > 0);
  RC_ASSERT(attention_flops(layer.backward_input) == 2.5 * attention_flops(layer.forward));
  const FlopCount count = count_flops(work, c.plan);
  RC_ASSERT(count.backward == 2 * count.forward);
  RC_ASSERT(count.rescore == 0.5 * attention_flops(layer.forward) * double(c.model.layers * c.plan.tp));
}

RC_GTEST_PROP(Flops, OfTheModelDoNotDependOnThePlan, ()) {
  const Case c = any_case();
  const double split = count_flops(make_work(c.model, c.plan), c.plan).model();
  Plan alone;
  alone.seq = c.plan.seq;
  alone.micro_batch = c.plan.micro_batch;
  const double whole = count_flops(make_work(c.model, alone), alone).model();
  RC_ASSERT(std::abs(split - whole) < 1e-12 * whole);
}

// 8 key and value heads of width 16 on 16 ranks: each rank has one, 8 too many. 5 rows of the table are
// padding.
TEST(Flops, OfTheHardwareCountWhatRanksRepeatAndPad) {
  Case c{llama(1, 256, 16, 8, 512, 1003), {}};
  c.plan.seq = 64;
  c.plan.sequence_parallel = true;
  const FlopCount alone = count_flops(make_work(c.model, c.plan), c.plan);
  EXPECT_EQ(alone.repeated, 0);
  c.plan.tp = 16;
  const FlopCount split = count_flops(make_work(c.model, c.plan), c.plan);
  EXPECT_NEAR(split.repeated, 3 * 2.0 * 64 * 256 * (2 * 8 * 16 + 5), 1e-6);
  EXPECT_NEAR(split.hardware() - alone.hardware(), split.repeated, 1e-6);
}

TEST(Flops, OfACausalAttentionCountFullSquares) {
  const Attention attention{2, 8, 2, 64, 128, 256};
  EXPECT_EQ(flops({"attention", attention, {}, {}}), 4.0 * 2 * 8 * 128 * 256 * 64);
}

TEST(Flops, OfKernelsBoundByMemoryAreNone) {
  EXPECT_EQ(flops({"norm", Pointwise::norm, {}, {}}), 0);
  EXPECT_EQ(flops({"sum", Collective{}, {}, {}}), 0);
}

}  // namespace
}  // namespace rehearse
