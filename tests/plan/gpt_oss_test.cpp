// gpt-oss: windows in every other layer, sinks, and the separate passes of its experts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/read.h"
#include "work_case.h"

namespace rehearse {
namespace {

Case gpt_oss(Dispatcher dispatcher = Dispatcher::all_to_all) {
  Case c{read_model("gpt-oss-20b"), {}};
  c.plan.seq = 4096;
  c.plan.ep = c.plan.dp = c.plan.global_batch = 8;
  c.plan.dispatcher = dispatcher;
  return c;
}

// Bytes that the kernels whose names begin so move, and how often the host launches.
struct Traffic {
  double bytes = 0;
  std::int64_t launches = 0;
};
Traffic traffic_of(const Block& block, const std::vector<Kernel>& kernels, const std::string& prefix) {
  Traffic sum;
  for (const Kernel& kernel : kernels) {
    if (!kernel.name.starts_with(prefix)) continue;
    sum.bytes += block.bytes_moved(kernel);
    sum.launches += kernel.launches;
  }
  return sum;
}

double elements_of(const Block& block, const std::string& name) {
  for (const Tensor& tensor : block.tensors)
    if (tensor.name == name) return tensor.elements;
  throw std::out_of_range(name);
}

TEST(GptOss, LooksThroughItsWindowInEveryOtherLayer) {
  const Case c = gpt_oss();
  const Work work = make_work(c.model, c.plan);
  std::map<std::string, std::int64_t> layers, windows;
  for (const Repeated& part : work.parts.front()) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    layers[block.name] += part.repeats;
    for (const Kernel& kernel : block.forward)
      if (const auto* attention = std::get_if<Attention>(&kernel.what))
        windows[block.name] = attention->window;
  }
  EXPECT_EQ(layers["sparse_layer"], 12);
  EXPECT_EQ(layers["full_sparse_layer"], 12);
  EXPECT_EQ(windows["sparse_layer"], 128);
  EXPECT_EQ(windows["full_sparse_layer"], 0);
}

TEST(GptOss, HoldsEveryParameterThatItCounts) {
  Case c = gpt_oss();
  c.plan.ep = c.plan.dp = c.plan.global_batch = 1;
  EXPECT_EQ(make_work(c.model, c.plan).parameters(0), double(count_parameters(c.model).total));
}

// Elements of 4,096 tokens with 4 choices each. Forward: scaled biases are written; these and the rows are
// read, and sums written; the sums are read, and written side by side. Backward: the rows' gradients side by
// side, and a GEMM for each factor, which its sum reads.
TEST(GptOss, AddsTheLastBiasInPassesOf16Bits) {
  const Case c = gpt_oss();
  const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
  const double n = 4096.0 * 4 * 2880, experts = 4;
  const Traffic there = traffic_of(layer, layer.forward, "experts_bias_");
  EXPECT_NEAR(there.bytes / n, 2 + 6 + 4, 0.01);
  EXPECT_EQ(there.launches, 2 * experts + 1);
  const Traffic to_weights = traffic_of(layer, layer.backward_input, "experts_bias_"),
                to_bias = traffic_of(layer, layer.backward_weight, "experts_bias_"),
                sum = traffic_of(layer, layer.backward_weight, "experts_down_bias_gradient");
  EXPECT_NEAR(to_weights.bytes / n, 4 + (4 + 2), 0.01);
  EXPECT_NEAR((to_bias.bytes + sum.bytes) / n, 4 + 2, 0.01);
}

// fp32 GEMMs and sums, a copy in 16 bits, and of its gradient one in fp32.
TEST(GptOss, AddsTheLastBiasInPassesOfFp32WhereALibraryWantsItsWeightsSo) {
  const Case c = gpt_oss(Dispatcher::hybridep);
  const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
  const double n = elements_of(layer, "experts_bias_sum");
  EXPECT_NEAR(traffic_of(layer, layer.forward, "experts_bias_").bytes / n, 4 + (2 + 4 + 4) + 8 + (4 + 2),
              0.01);
  EXPECT_NEAR(traffic_of(layer, layer.backward_input, "experts_bias_").bytes / n,
              (2 + 4) + (4 + 2) + 4 + 8 + 4, 0.01);
}

// Forward: two halves are clamped and joined. Backward: each half is compared with the upper bound, one also
// with the lower bound, with a conjunction. Then come a choice and the join of the halves.
TEST(GptOss, ClampsWhatItActivatesInPassesWhereNoProductDoes) {
  Case c = gpt_oss();
  const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
  const double n = elements_of(layer, "experts_up_output");
  EXPECT_DOUBLE_EQ(traffic_of(layer, layer.forward, "experts_clamp").bytes / n, 8);
  EXPECT_DOUBLE_EQ(traffic_of(layer, layer.backward_input, "experts_clamp").bytes / n, 3 + 3 + 5 + 4);
  EXPECT_EQ(traffic_of(layer, layer.forward, "experts_clamp").launches, 3);
  c.plan.precision = Precision::fp8;
  c.plan.fp8_scaling = Fp8Scaling::mx;
  c.plan.fp8_either_layout = c.plan.fused_experts = true;
  c.plan.recipe = Recipe::zero;
  const Block fused = block_called(make_work(c.model, c.plan), "sparse_layer");
  EXPECT_EQ(traffic_of(fused, fused.forward, "experts_clamp").launches, 0);
  EXPECT_EQ(traffic_of(fused, fused.forward, "experts_bias_").launches, 0);
}

TEST(GptOss, GivesASinkOfEachHeadItsGradientHoweverAttentionRuns) {
  for (const bool fused : {true, false}) {
    Case c = gpt_oss();
    c.plan.fused_attention = fused;
    const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
    EXPECT_EQ(elements_of(layer, "sinks"), 64);
    EXPECT_EQ(elements_of(layer, "sinks_gradient"), 64);
  }
}

}  // namespace
}  // namespace rehearse
