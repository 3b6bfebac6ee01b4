// NVFP4 as in Transformer Engine: passes over operands, outputs, and casts of weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/read.h"
#include "plan/fp8.h"
#include "plan/rules/rules.h"
#include "work_case.h"

namespace rehearse::fp4 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kTokens = 32, kDepth = 64, kKeyWidth = 16, kFfn = 160;
constexpr double kInputWidths = 3 * kDepth + kFfn;
constexpr double kGradientWidths = (kDepth + 2 * kKeyWidth) + 2 * kDepth + 2 * kFfn;

Case fp4_case(int tp = 1) {
  Case c{llama(2, kDepth, 8, 2, kFfn, 512), {}};
  c.plan.seq = kTokens;
  c.plan.tp = tp;
  c.plan.sequence_parallel = tp > 1;
  c.plan.precision = Precision::fp4;
  return c;
}

Block layer_of(const Case& c) {
  return block_called(make_work(c.model, c.plan), "layer");
}

// Bytes that kernels of one kind move in all passes, for each token; without the maxima, 4 bytes each.
double bytes_of(const Block& block, Pointwise kind) {
  double bytes = 0;
  for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight}) {
    for (const Kernel& kernel : *kernels) {
      const auto* of = std::get_if<Pointwise>(&kernel.what);
      if (of == nullptr || stream_of(*of) != kind) continue;
      bytes += block.bytes_moved(kernel);
      for (const auto* ids : {&kernel.reads, &kernel.writes})
        for (const TensorId id : *ids)
          if (block.tensors[static_cast<std::size_t>(id)].elements == 1) bytes -= 4;
    }
  }
  return bytes / kTokens;
}

// Every operand is read in 16 bits twice, for its maxima and for the cast, and written by rows and by
// columns. No norm finds a maximum, as columns need it after a transform. Gradients are rounded
// stochastically.
TEST(Fp4, PassesOverEveryOperandAndThenWritesItBothWays) {
  const Block block = layer_of(fp4_case());
  EXPECT_DOUBLE_EQ(bytes_of(block, Pointwise::quantize_fp4),
                   (2 + 2 + 2 * kFp4Bytes) * kInputWidths + 2 * kGradientWidths);
  EXPECT_DOUBLE_EQ(bytes_of(block, Pointwise::quantize_fp4_at_random), (2 + 2 * kFp4Bytes) * kGradientWidths);
  EXPECT_DOUBLE_EQ(bytes_of(block, Pointwise::quantize), 0);
}

TEST(Fp4, MultipliesInTheSameLayersAsFp8) {
  Case c = fp4_case();
  const Block in_fp4 = layer_of(c);
  c.plan.precision = Precision::fp8;
  const Block in_fp8 = layer_of(c);
  EXPECT_DOUBLE_EQ(cast_elements(in_fp4, in_fp4.forward, Precision::fp4),
                   cast_elements(in_fp8, in_fp8.forward, Precision::fp8));
  for (const Kernel& kernel : in_fp4.forward) {
    const bool is_product = std::holds_alternative<Gemm>(kernel.what);
    EXPECT_EQ(precision_of(in_fp4, kernel, Precision::fp4), is_product ? Precision::fp4 : Precision::bf16)
        << kernel.name;
  }
}

// Under an NVFP4 recipe attention multiplies in fp8, a byte an element, scaled by tensor.
TEST(Fp4, AttentionMayMultiplyInFp8) {
  Case c = fp4_case();
  c.plan.fp8_attention = true;
  c.plan.fp8_either_layout = true;
  c.plan.cp = 1;
  EXPECT_TRUE(broken_rules(c.plan, c.model, 1).empty());
  const Block block = layer_of(c);
  int attentions = 0;
  for (const Kernel& kernel : block.forward) {
    const auto* attention = std::get_if<Attention>(&kernel.what);
    if (attention == nullptr) continue;
    ++attentions;
    EXPECT_EQ(attention->operands, AttentionOperands::fp8);
    EXPECT_EQ(block.tensors[static_cast<std::size_t>(kernel.reads.front())].element_bytes, 1);
  }
  EXPECT_EQ(attentions, 1);
  EXPECT_GT(bytes_of(block, Pointwise::quantize), 0);
}

// A rank gathers half a byte an element and a sixteenth for the scales: rows for one GEMM, columns of
// gradients for the other.
TEST(Fp4, GathersRowsAndColumnsInNineSixteenthsOfAByte) {
  const Block block = layer_of(fp4_case(2));
  std::vector<double> bytes;
  for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight})
    for (const Kernel& kernel : *kernels) {
      const auto* collective = std::get_if<Collective>(&kernel.what);
      if (collective != nullptr && collective->op == CollectiveOp::all_gather)
        bytes.push_back(collective->bytes / (kTokens * kDepth));
    }
  EXPECT_THAT(bytes, ElementsAre(kFp4Bytes, kFp4Bytes, kFp4Bytes, kFp4Bytes, kFp4Bytes, kFp4Bytes, kFp4Bytes,
                                 kFp4Bytes));
}

// Once a step: the maximum, then rows and columns.
TEST(Fp4, CastsWeightsOnceAStep) {
  Case c = fp4_case();
  c.plan.global_batch = 4;
  const WeightCasts casts = weight_casts(c.plan);
  EXPECT_THAT(casts.forward, ElementsAre(2.0 / 4, (2 + 2 * kFp4Bytes) / 4));
  EXPECT_TRUE(casts.again.empty());
  EXPECT_TRUE(casts.backward.empty());
}

TEST(Fp4, IsMegatronCoresAloneAndBlackwells) {
  Case c = fp4_case();
  std::vector<Violation> broken = broken_rules(c.plan, c.model, c.plan.gpus());
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_THAT(broken.front().rule, HasSubstr("needs Blackwell"));
  c.plan.fp8_either_layout = true;
  EXPECT_TRUE(broken_rules(c.plan, c.model, c.plan.gpus()).empty());
  c.plan.framework = Framework::torchtitan;
  broken = broken_rules(c.plan, c.model, c.plan.gpus());
  ASSERT_FALSE(broken.empty());
  EXPECT_THAT(broken.front().rule, HasSubstr("NVFP4 needs framework megatron-core"));
}

}  // namespace
}  // namespace rehearse::fp4
