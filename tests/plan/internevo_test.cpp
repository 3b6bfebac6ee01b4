// Decisions of InternEvo's recipe, and the bytes that its kernels move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/frameworks/traits.h"
#include "plan/recipe.h"
#include "plan/sharding.h"
#include "work_case.h"

namespace rehearse {
namespace {

constexpr double kTokens = 32, kHidden = 64;

Plan internevo(Precision precision) {
  Plan plan;
  plan.framework = Framework::internevo;
  plan.precision = precision;
  plan.seq = static_cast<std::int64_t>(kTokens);
  plan.tp = 2;
  apply_framework(plan);
  plan.tp = 1;
  return plan;
}

Case small_case(Precision precision = Precision::bf16) {
  return {llama(2, static_cast<std::int64_t>(kHidden), 4, 2, 160, 320), internevo(precision)};
}

Block layer_of(const Case& c) {
  return block_called(make_work(c.model, c.plan), "layer");
}

double moved(const Block& block, const std::vector<Kernel>& kernels, const std::string& prefix) {
  double bytes = 0;
  for (const Kernel& kernel : kernels)
    if (kernel.name.starts_with(prefix)) bytes += block.bytes_moved(kernel);
  return bytes;
}

std::vector<std::string> names(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels) names.push_back(kernel.name);
  return names;
}

TEST(InternEvo, KeepsAndReducesGradientsInTheTrainingPrecisionInBucketsOf2To29) {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    const Plan plan = internevo(precision);
    EXPECT_EQ(plan.grad_reduce, precision);
    EXPECT_EQ(plan.bucket_bytes, 512.0 * 1024 * 1024 * 2);
    EXPECT_FALSE(plan.sequence_parallel);
    EXPECT_FALSE(plan.fused_activation);
    EXPECT_FALSE(plan.fused_adam);
    EXPECT_TRUE(plan.fused_norm);
  }
  const Plan whole = internevo(Precision::fp32);
  EXPECT_EQ(whole.grad_reduce, Precision::fp32);
  EXPECT_EQ(whole.bucket_bytes, 512.0 * 1024 * 1024 * 4);
}

// Weight and gradient in 16 bits; the gradient's fp32 copy, master weight and moments.
TEST(InternEvo, Keeps20BytesAParameter) {
  const StateBytes state = state_bytes(internevo(Precision::bf16));
  EXPECT_EQ(state.parameter, 2);
  EXPECT_EQ(state.gradient, 2);
  EXPECT_EQ(state.gradient_copy, 4);
  EXPECT_EQ(state.total(), 20);
  EXPECT_EQ(state_bytes(internevo(Precision::fp32)).total(), 16);
}

TEST(InternEvo, CopiesEachByteOfABucketThreeTimes) {
  EXPECT_EQ(bucket_copies(internevo(Precision::bf16)), 3 * 2);
  EXPECT_EQ(bucket_copies(Plan{}), 0);
}

// Forward: 2 read and 4 written, then 4 and 2. Backward: the gradient's 2 and the input's 4 read and 4
// written, then 4 and 2; for the weight's gradient 2 and 4 read.
TEST(InternEvo, NormsReadFp32Copies) {
  const Block layer = layer_of(small_case());
  const double elements = kTokens * kHidden;
  // Gate and up projection each make a gradient of the second norm's output, and these are summed.
  for (const auto& [norm, sum] : {std::pair{"attention_norm", 0.0}, {"mlp_norm", 6 * elements}}) {
    EXPECT_EQ(moved(layer, layer.forward, norm), 12 * elements + 2 * kHidden) << norm;
    EXPECT_EQ(moved(layer, layer.backward_input, norm), 16 * elements + 2 * kHidden + sum) << norm;
    EXPECT_EQ(moved(layer, layer.backward_weight, norm), 6 * elements + 2 * kHidden) << norm;
  }
}

TEST(InternEvo, NormsOfFp32ModelsCopyNothing) {
  const Block layer = layer_of(small_case(Precision::fp32));
  EXPECT_THAT(names(layer.forward), testing::Not(testing::Contains("attention_norm_widened")));
  EXPECT_EQ(moved(layer, layer.forward, "attention_norm"), 8 * kTokens * kHidden + 4 * kHidden);
}

TEST(InternEvo, RunsNormsAgainWhereNothingElseIs) {
  const Block layer = layer_of(small_case());
  EXPECT_THAT(names(layer.recompute), testing::ElementsAre("attention_norm_widened", "attention_norm",
                                                           "mlp_norm_widened", "mlp_norm"));
}

TEST(InternEvo, KeepsNothingThatItsNormsMake) {
  Case c = small_case();
  const double kept = saved_bytes(layer_of(c));
  c.plan.framework = Framework::deepspeed;  // in place of the norms' output
  EXPECT_EQ(saved_bytes(layer_of(c)) - kept, 2 * 2 * kTokens * kHidden);
}

TEST(InternEvo, RecomputesWholeLayersOnce) {
  Case c = small_case();
  c.plan.recompute = Recompute::full;
  const Block layer = layer_of(c);
  EXPECT_EQ(names(layer.recompute), names(layer.forward));
}

TEST(InternEvo, RunsTheModulesAgainThatSelectiveRecomputeNames) {
  Case c = small_case();
  c.plan.recompute = Recompute::selective;
  c.plan.recompute_modules = {RecomputeModule::core_attn};
  EXPECT_THAT(names(layer_of(c).recompute), testing::Not(testing::Contains("attention_norm")));
}

TEST(InternEvo, HoldsNoMoreParametersAndMultipliesNoMore) {
  Case c = small_case();
  const Work evo = make_work(c.model, c.plan);
  c.plan.framework = Framework::megatron_core;
  const Work core = make_work(c.model, c.plan);
  EXPECT_EQ(evo.parameters(0), core.parameters(0));
  EXPECT_EQ(count_flops(evo, c.plan).model(), count_flops(core, c.plan).model());
}

}  // namespace
}  // namespace rehearse
