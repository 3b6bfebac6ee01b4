// Kernels of torchtitan's layers: one GEMM each where others fuse them, and asynchronous tensor parallelism.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kTokens = 32, kHidden = 64;
constexpr double kRows = kTokens * kHidden;

Case titan(int tp, bool async = false) {
  Case c{llama(2, kHidden, 8, 2, 160, 512), {}};
  c.plan.framework = Framework::torchtitan;
  c.plan.seq = kTokens;
  c.plan.tp = tp;
  c.plan.sequence_parallel = tp > 1;
  c.plan.tp_backward_overlap = false;
  c.plan.tp_comm_overlap = async;
  return c;
}

Case by_rows(Case c) {
  c.plan.precision = Precision::fp8;
  c.plan.fp8_scaling = Fp8Scaling::row;
  return c;
}

Block layer_of(const Case& c) {
  return block_called(make_work(c.model, c.plan), "layer");
}

std::vector<std::string> products(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels)
    if (std::holds_alternative<Gemm>(kernel.what)) names.push_back(kernel.name);
  return names;
}

std::size_t count(const std::vector<Kernel>& kernels, const std::string& ending) {
  return static_cast<std::size_t>(
      std::ranges::count_if(kernels, [&](const Kernel& kernel) { return kernel.name.ends_with(ending); }));
}

TEST(Torchtitan, HasAProductEachForWhatOthersMakeInOne) {
  const Case c = titan(1);
  EXPECT_THAT(products(layer_of(c).forward),
              ElementsAre("query_projection", "key_projection", "value_projection", "projection", "mlp_gate",
                          "mlp_up", "mlp_down"));
  Case other = c;
  other.plan.framework = Framework::fsdp;
  EXPECT_THAT(products(layer_of(other).forward), ElementsAre("qkv", "projection", "mlp_up", "mlp_down"));
  const auto flops_of = [](const Block& block) {
    double sum = 0;
    for (const auto* list : {&block.forward, &block.backward_input, &block.backward_weight})
      for (const Kernel& kernel : *list) sum += flops(kernel);
    return sum;
  };
  EXPECT_DOUBLE_EQ(flops_of(layer_of(c)), flops_of(layer_of(other)));
  EXPECT_EQ(layer_of(c).parameters(), layer_of(other).parameters());
}

// Three of queries, keys and values, two of gate and up, 2 bytes an element; the sum is written.
TEST(Torchtitan, AddsUpTheGradientsOfAnInputThatSeveralProductsRead) {
  const Block layer = layer_of(titan(1));
  EXPECT_EQ(layer.bytes_moved(kernel_called(layer.backward_input, "attention_norm_output_gradient")),
            (3 + 1) * 2 * kRows);
  EXPECT_EQ(layer.bytes_moved(kernel_called(layer.backward_input, "mlp_norm_output_gradient")),
            (2 + 1) * 2 * kRows);
}

TEST(Torchtitan, GathersAndQuantizesAnInputOnce) {
  const Block layer = layer_of(by_rows(titan(2)));
  EXPECT_EQ(count(layer.forward, "_all_gather"), 2U);
  EXPECT_EQ(count(layer.forward, "_operand_quantise"), 4U);
  EXPECT_EQ(count(layer.backward_weight, "_operand_again_quantise"), 4U);
}

// Each call is concurrent with a chunk of every GEMM that reads the gathered tensor.
TEST(AsyncTensorParallelism, GathersInStepsBesideAllProductsOfTheGathered) {
  const Block layer = layer_of(titan(4, true));
  const Kernel& gather = kernel_called(layer.forward, "attention_norm_output_gathered_for_qkv_all_gather");
  const auto& sent = std::get<Collective>(gather.what);
  EXPECT_EQ(sent.op, CollectiveOp::send_receive);
  EXPECT_EQ(sent.calls, 3);
  EXPECT_EQ(sent.bytes, 2 * kRows / 4);
  for (const char* name : {"query_projection", "key_projection", "value_projection"})
    EXPECT_TRUE(runs_beside(gather, kernel_called(layer.forward, name))) << name;
  EXPECT_FALSE(runs_beside(gather, kernel_called(layer.forward, "mlp_gate")));
  for (const char* name : {"query_projection", "mlp_gate", "mlp_down"})
    EXPECT_EQ(chunks_of(kernel_called(layer.forward, name)), 4) << name;
}

// A shard is read and written before each gather. After each scatter, as many partial sums as ranks are read,
// and their sum written: 2 bytes an element.
TEST(AsyncTensorParallelism, CopiesItsShardAndAddsUpPartialSumsWithNothingBeside) {
  const Block layer = layer_of(titan(4, true));
  for (const auto& [kernels, gathers] :
       {std::pair{&layer.forward, "_shared"}, {&layer.backward_input, "_gradient_shared"}}) {
    EXPECT_EQ(count(*kernels, gathers), 2U);
    for (const Kernel& kernel : *kernels)
      if (kernel.name.ends_with("_shared")) {
        EXPECT_EQ(layer.bytes_moved(kernel), 2 * 2 * kRows / 4) << kernel.name;
      }
  }
  EXPECT_EQ(count(layer.forward, "_added_up"), 2U);
  EXPECT_EQ(layer.bytes_moved(kernel_called(layer.forward, "mlp_down_output_added_up")),
            2 * (kRows + kRows / 4));
  EXPECT_EQ(kernel_called(layer.forward, "mlp_down_output_reduce_scatter").overlap.exposed_calls, 0);
}

// The sum of several GEMMs' gradients is no GEMM (torch.compile scatters it whole).
TEST(AsyncTensorParallelism, ScattersTheGradientOfWhatSeveralProductsReadWhole) {
  const Block layer = layer_of(titan(4, true));
  EXPECT_EQ(
      std::get<Collective>(kernel_called(layer.backward_input,
                                         "attention_norm_output_gathered_for_qkv_gradient_reduce_scatter")
                               .what)
          .op,
      CollectiveOp::reduce_scatter);
  EXPECT_EQ(chunks_of(kernel_called(layer.backward_input, "query_projection_input_gradient")), 1);
}

TEST(AsyncTensorParallelism, ScaledByRowScattersInStepsAndGathersWhole) {
  const Block layer = layer_of(by_rows(titan(4, true)));
  for (const auto* kernels : {&layer.forward, &layer.backward_input})
    for (const Kernel& kernel : *kernels) {
      const auto* collective = std::get_if<Collective>(&kernel.what);
      if (collective != nullptr && kernel.name.ends_with("_all_gather")) {
        EXPECT_EQ(collective->op, CollectiveOp::all_gather) << kernel.name;
      }
    }
  EXPECT_EQ(count(layer.forward, "_added_up"), 2U);
  EXPECT_EQ(chunks_of(kernel_called(layer.forward, "query_projection")), 1);
  EXPECT_EQ(chunks_of(kernel_called(layer.forward, "projection")), 4);
}

// Two results of single GEMMs are read and written in 2 bytes, and so are the weight gradients of all seven.
// Summed results are scaled in the sum.
TEST(Fp8ByRow, ScalesWhatItsBackwardProductsMadeAfterwards) {
  const Block layer = layer_of(by_rows(titan(1)));
  double inputs = 0, weights = 0;
  for (const Kernel& kernel : layer.backward_input)
    if (kernel.name.ends_with("_rescaled")) inputs += layer.bytes_moved(kernel);
  for (const Kernel& kernel : layer.backward_weight)
    if (kernel.name.ends_with("_rescaled")) weights += layer.bytes_moved(kernel);
  EXPECT_EQ(inputs, 4 * kTokens * (kHidden + 160));
  EXPECT_EQ(weights, 4 * kHidden * (kHidden + 2 * 16 + kHidden + 3 * 160));
}

TEST(AsyncTensorParallelism, RecomputeByOpRunsNoScatterAgain) {
  Case c = titan(4, true);
  c.plan.recompute = Recompute::op;
  const Block layer = layer_of(c);
  EXPECT_EQ(count(layer.recompute, "_reduce_scatter"), 0U);
  EXPECT_EQ(count(layer.recompute, "_added_up"), 0U);
  EXPECT_THAT(products(layer.recompute), ElementsAre("key_projection", "mlp_up"));
}

}  // namespace
}  // namespace rehearse
