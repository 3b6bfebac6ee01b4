// Transformer Engine's recipes: quantized tensors, the number of reads for that, and the ranks' gathers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/read.h"
#include "plan/fp8.h"
#include "plan/sharding.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kTokens = 32, kDepth = 64, kKeyWidth = 16, kFfn = 160;
constexpr double kInputWidths = kDepth + kFfn;  // beside those that norms make
constexpr double kGradientWidths = (kDepth + 2 * kKeyWidth) + 2 * kDepth + 2 * kFfn;

Case recipe_case(Fp8Scaling scaling, bool either_layout, int tp = 1) {
  Case c{llama(2, kDepth, 8, 2, kFfn, 512), {}};
  c.plan.seq = kTokens;
  c.plan.tp = tp;
  c.plan.sequence_parallel = tp > 1;
  c.plan.precision = Precision::fp8;
  c.plan.fp8_scaling = scaling;
  c.plan.fp8_either_layout = either_layout;
  return c;
}

Block layer_under(const Case& c) {
  return block_called(make_work(c.model, c.plan), "layer");
}

bool quantizes(const Kernel& kernel) {
  const auto* kind = std::get_if<Pointwise>(&kernel.what);
  if (kind == nullptr) return false;
  const Pointwise stream = stream_of(*kind);
  return stream == Pointwise::quantize || stream == Pointwise::quantize_blocks ||
         stream == Pointwise::quantize_fp4 || stream == Pointwise::quantize_fp4_at_random;
}

std::vector<Kernel> kernels_both_ways(const Block& block) {
  std::vector<Kernel> all = block.forward;
  all.insert(all.end(), block.backward_input.begin(), block.backward_input.end());
  all.insert(all.end(), block.backward_weight.begin(), block.backward_weight.end());
  return all;
}

// Bytes that quantizing moves, for each token; without the maxima, 4 bytes written and read.
double quantized_bytes(const Case& c) {
  const Block block = layer_under(c);
  double bytes = 0;
  for (const Kernel& kernel : kernels_both_ways(block)) {
    if (!quantizes(kernel)) continue;
    bytes += block.bytes_moved(kernel);
    for (const auto* ids : {&kernel.reads, &kernel.writes})
      for (const TensorId id : *ids)
        if (block.tensors[static_cast<std::size_t>(id)].elements == 1) bytes -= 4;
  }
  return bytes / kTokens;
}

// Where GEMMs take either layout nothing is written by columns, and nothing transposed.
TEST(Fp8Recipes, WriteOperandsOnceWhereProductsTakeEitherLayout) {
  EXPECT_DOUBLE_EQ(quantized_bytes(recipe_case(Fp8Scaling::tensor, true)),
                   3 * (kInputWidths + kGradientWidths));
  EXPECT_DOUBLE_EQ(quantized_bytes(recipe_case(Fp8Scaling::tensor, false)),
                   2 * 2 * kDepth + 4 * (kInputWidths + kGradientWidths));
}

// The two norms write 16 bits and find the maximum on the way; all else is read for it.
TEST(Fp8Recipes, CurrentScalingReadsTwiceWhatNoNormMade) {
  const double norms = 2 * kDepth;
  EXPECT_DOUBLE_EQ(quantized_bytes(recipe_case(Fp8Scaling::current, false)),
                   4 * norms + (2 + 4) * (kInputWidths + kGradientWidths));
  EXPECT_DOUBLE_EQ(quantized_bytes(recipe_case(Fp8Scaling::current, true)),
                   3 * norms + (2 + 3) * (kInputWidths + kGradientWidths));
}

TEST(Fp8Recipes, BlocksAreQuantizedBothWaysFrom16Bits) {
  const Case c = recipe_case(Fp8Scaling::mx, true);
  EXPECT_DOUBLE_EQ(quantized_bytes(c), 4 * (2 * kDepth + kInputWidths + kGradientWidths));
  const Block block = layer_under(c);
  for (const Kernel& kernel : kernels_both_ways(block))
    EXPECT_TRUE(!quantizes(kernel) || std::get<Pointwise>(kernel.what) == Pointwise::quantize_blocks);
}

// Saved activations of the layer have a byte an element under every recipe.
TEST(Fp8Recipes, KeepInputsInAByte) {
  const double delayed = saved_bytes(layer_under(recipe_case(Fp8Scaling::tensor, false)));
  for (const Fp8Scaling scaling : {Fp8Scaling::tensor, Fp8Scaling::current, Fp8Scaling::mx})
    EXPECT_NEAR(saved_bytes(layer_under(recipe_case(scaling, true))), delayed, 16) << to_string(scaling);
}

std::vector<double> gathers(const std::vector<Kernel>& kernels) {
  std::vector<double> bytes;
  for (const Kernel& kernel : kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (collective != nullptr && collective->op == CollectiveOp::all_gather)
      bytes.push_back(collective->bytes / (kTokens * kDepth));
  }
  return bytes;
}

// Rows for one GEMM and columns for the other. Inputs are gathered as often as before; the two gathered
// gradients are gathered once more each.
TEST(Fp8Recipes, BlocksOfGradientsAreGatheredTwice) {
  const Block tensors = layer_under(recipe_case(Fp8Scaling::current, true, 2));
  EXPECT_THAT(gathers(tensors.forward), ElementsAre(1, 1));
  EXPECT_THAT(gathers(tensors.backward_input), ElementsAre(1, 1));
  EXPECT_THAT(gathers(tensors.backward_weight), ElementsAre(1, 1));
  const Block blocks = layer_under(recipe_case(Fp8Scaling::mx, true, 2));
  EXPECT_THAT(gathers(blocks.forward), ElementsAre(1, 1));
  EXPECT_THAT(gathers(blocks.backward_input), ElementsAre(1, 1));
  EXPECT_THAT(gathers(blocks.backward_weight), ElementsAre(1, 1, 1, 1));
}

TEST(Fp8Recipes, UserBuffersGatherColumnsBesideTheInputGradient) {
  Case c = recipe_case(Fp8Scaling::mx, true, 2);
  const auto beside = [&c] {
    const Block layer = layer_under(c);
    const Kernel& gather = kernel_called(layer.backward_weight, "mlp_down_gradient_columns_all_gather");
    return runs_beside(gather, kernel_called(layer.backward_input, "mlp_down_input_gradient"));
  };
  EXPECT_FALSE(beside());
  c.plan.tp_comm_overlap = true;
  EXPECT_TRUE(beside());
}

// Two inputs and two gradients of a shard each.
TEST(Fp8Recipes, RanksAgreeOnTheMaximumOfShards) {
  const auto agreed = [](Fp8Scaling scaling, int tp) {
    const std::vector<Kernel> kernels = kernels_both_ways(layer_under(recipe_case(scaling, false, tp)));
    return std::ranges::count_if(kernels, [](const Kernel& kernel) {
      const auto* collective = std::get_if<Collective>(&kernel.what);
      return collective != nullptr && collective->op == CollectiveOp::all_reduce && collective->bytes == 4;
    });
  };
  EXPECT_EQ(agreed(Fp8Scaling::current, 2), 4);
  EXPECT_EQ(agreed(Fp8Scaling::current, 1), 0);
  EXPECT_EQ(agreed(Fp8Scaling::tensor, 2), 0);
}

TEST(Fp8Recipes, CastWeightsOnceAStep) {
  Plan plan = recipe_case(Fp8Scaling::current, false).plan;
  plan.global_batch = 4;
  EXPECT_THAT(weight_casts(plan).forward, ElementsAre(2 / 4.0, 4 / 4.0));
  plan.fp8_either_layout = true;
  EXPECT_THAT(weight_casts(plan).forward, ElementsAre(2 / 4.0, 3 / 4.0));
  plan.fp8_scaling = Fp8Scaling::mx;
  EXPECT_THAT(weight_casts(plan).forward, ElementsAre(4 / 4.0));
}

// Megatron-LM's --reuse-grad-buf-for-mxfp8-param-ag: a shard of the gathered weights holds no whole blocks.
TEST(Fp8Recipes, WeightsHeldInBlocksAreGatheredIn16Bits) {
  Plan plan = recipe_case(Fp8Scaling::mx, true).plan;
  plan.recipe = Recipe::fp8_weights;
  plan.global_batch = 4;
  EXPECT_EQ(parameter_bytes(plan), 2);
  EXPECT_THAT(weight_casts(plan).forward, ElementsAre(4 / 4.0));
  plan.fp8_scaling = Fp8Scaling::current;
  EXPECT_EQ(parameter_bytes(plan), 1);
}

// Delayed scaling casts all experts' rows in one kernel.
TEST(Fp8Recipes, CastTheRowsOfExpertsOneByOne) {
  Case c{read_model("qwen3-30b-a3b"), {}};
  c.plan.seq = 4096;
  c.plan.ep = c.plan.dp = c.plan.global_batch = 8;
  c.plan.precision = Precision::fp8;
  c.plan.fp8_either_layout = true;
  const auto launches = [&c](const char* kernel) {
    return kernel_called(block_called(make_work(c.model, c.plan), "sparse_layer").forward, kernel).launches;
  };
  EXPECT_EQ(launches("experts_up_operand_quantise"), 1);
  c.plan.fp8_scaling = Fp8Scaling::mx;
  EXPECT_EQ(launches("experts_up_operand_quantise"), 16);
  c.plan.fp8_scaling = Fp8Scaling::current;
  EXPECT_EQ(launches("experts_up_operand_quantise"), 16);
  EXPECT_EQ(launches("experts_up_operand_maximum"), 32) << "and a scale each";
  EXPECT_EQ(launches("qkv_operand_quantise"), 1);
}

std::string rules_broken(const Plan& plan) {
  std::string text;
  for (const Violation& violation : broken_rules(plan, llama(2, 64, 8, 2, 160, 512), plan.gpus()))
    text += violation.pointer + ": " + violation.rule + "; ";
  return text;
}

TEST(Fp8Recipes, AreThoseOfMegatronCore) {
  Plan plan = recipe_case(Fp8Scaling::mx, true).plan;
  plan.global_batch = 1;
  EXPECT_EQ(rules_broken(plan), "");
  plan.fp8_either_layout = false;
  EXPECT_EQ(rules_broken(plan),
            "fp8_scaling: MXFP8 needs Blackwell, with compute capability 10.0 or above; ");
  plan.fp8_scaling = Fp8Scaling::current;
  EXPECT_EQ(rules_broken(plan), "");
  plan.framework = Framework::torchtitan;
  EXPECT_THAT(rules_broken(plan),
              testing::HasSubstr("Transformer Engine's recipes need framework megatron-core"));
  plan = recipe_case(Fp8Scaling::mx, true).plan;
  plan.global_batch = 1;
  plan.recipe = Recipe::fp8_weights;
  plan.fp8_weight_copies = 1;
  EXPECT_EQ(rules_broken(plan),
            "fp8_weight_copies: MXFP8 needs two copies of the weights, scaled by rows and by columns; ");
}

TEST(Fp8Recipes, KeepLayersAtTheEndsInBf16) {
  Case c = recipe_case(Fp8Scaling::mx, true);
  c.model.layers = 6;
  c.plan.bf16_first_layers = 1;
  c.plan.bf16_last_layers = 2;
  const Work work = make_work(c.model, c.plan);
  std::vector<std::pair<std::string, std::int64_t>> runs;
  for (const Repeated& part : work.parts.front())
    runs.emplace_back(work.blocks[static_cast<std::size_t>(part.block)].name, part.repeats);
  EXPECT_THAT(runs, ElementsAre(std::pair("embedding", 1), std::pair("bf16_layer", 1), std::pair("layer", 3),
                                std::pair("bf16_layer", 2), std::pair("head", 1)));
  const Block ends = block_called(work, "bf16_layer"), middle = block_called(work, "layer");
  EXPECT_TRUE(std::ranges::none_of(kernels_both_ways(ends), quantizes));
  for (const Kernel& kernel : kernels_both_ways(ends))
    EXPECT_FALSE(multiplies_quantized(ends, kernel, c.plan.precision)) << kernel.name;
  EXPECT_TRUE(multiplies_quantized(middle, kernel_called(middle.forward, "qkv"), c.plan.precision));
  EXPECT_EQ(rules_broken(c.plan), "");
  c.plan.precision = Precision::bf16;
  EXPECT_THAT(
      rules_broken(c.plan),
      testing::HasSubstr(
          "bf16_last_layers: first and last layers in bf16 need framework megatron-core in fp8 or fp4"));
}

TEST(Fp8Recipes, DownProjectionsOfLatentAttentionMultiplyAsTheLayersDoAndRoutersDoNot) {
  Case c{read_model("deepseek-v3"), {}};
  c.plan.seq = 4096;
  c.plan.precision = Precision::fp8;
  c.plan.fp8_scaling = Fp8Scaling::mx;
  const Block block = block_called(make_work(c.model, c.plan), "sparse_layer");
  const auto in_fp8 = [&](const char* name) {
    return multiplies_quantized(block, kernel_called(block.forward, name), c.plan.precision);
  };
  EXPECT_TRUE(in_fp8("query_down") && in_fp8("kv_down") && in_fp8("query_up"));
  EXPECT_FALSE(in_fp8("router"));
}

}  // namespace
}  // namespace rehearse
