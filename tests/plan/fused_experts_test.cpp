// Experts whose GEMMs activate and quantize too (Transformer Engine's operation fuser).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "model/read.h"
#include "work_case.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;

Case qwen(bool fused) {
  Case c{read_model("qwen3-30b-a3b"), {}};
  c.plan.seq = 4096;
  c.plan.ep = c.plan.dp = c.plan.global_batch = 8;
  c.plan.precision = Precision::fp8;
  c.plan.fp8_scaling = Fp8Scaling::mx;
  c.plan.fp8_either_layout = true;
  c.plan.recipe = Recipe::zero;
  c.plan.fused_experts = fused;
  return c;
}

std::vector<std::string> of_experts(const std::vector<Kernel>& kernels) {
  std::vector<std::string> names;
  for (const Kernel& kernel : kernels)
    if (kernel.name.starts_with("experts_")) names.push_back(kernel.name);
  return names;
}

TEST(FusedExperts, RunTheirProductsAndQuantizeWhatComesAlone) {
  const Case c = qwen(true);
  const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
  EXPECT_THAT(of_experts(layer.forward),
              ElementsAre("experts_up_operand_quantise", "experts_up", "experts_down"));
  EXPECT_THAT(of_experts(layer.backward_input),
              ElementsAre("experts_down_gradient_quantise", "experts_down_input_gradient",
                          "experts_up_input_gradient"));
  EXPECT_THAT(of_experts(layer.backward_weight),
              ElementsAre("experts_down_weight_gradient", "experts_up_weight_gradient"));
  for (const Kernel& kernel : layer.forward) EXPECT_EQ(kernel.launches, 1) << kernel.name;
}

TEST(FusedExperts, MultiplyAsMuchAsOthersAndSaveLess) {
  const Case fused = qwen(true), plain = qwen(false);
  const Work a = make_work(fused.model, fused.plan), b = make_work(plain.model, plain.plan);
  EXPECT_DOUBLE_EQ(count_flops(a, fused.plan).hardware(), count_flops(b, plain.plan).hardware());
  EXPECT_EQ(a.parameters(0), b.parameters(0));
  const Block layer = block_called(a, "sparse_layer"), other = block_called(b, "sparse_layer");
  // 4,096 x 8 rows of 768: no more in bf16; in fp8 only by columns, as before.
  EXPECT_DOUBLE_EQ(other.bytes(other.saved) - layer.bytes(layer.saved), 0)
      << "what quantisation had made was saved in its place before";
}

TEST(FusedExperts, GiveEveryGradientThatOthersGive) {
  const auto gradients = [](const Case& c) {
    std::vector<std::string> names;
    const Block layer = block_called(make_work(c.model, c.plan), "sparse_layer");
    for (const Tensor& tensor : layer.tensors)
      if (tensor.name.ends_with("_weight_gradient") || tensor.name == "input_gradient" ||
          tensor.name == "expert_weights_gradient")
        names.push_back(tensor.name);
    std::ranges::sort(names);
    return names;
  };
  EXPECT_EQ(gradients(qwen(true)), gradients(qwen(false)));
}

std::string broken(const std::function<void(Case&)>& change) {
  Case c = qwen(true);
  change(c);
  std::string rules;
  for (const Violation& violation : broken_rules(c.plan, c.model, c.plan.gpus()))
    if (violation.pointer == "fused_experts") rules += violation.rule + "; ";
  return rules;
}

TEST(FusedExperts, AreThoseOfSwiGluInMxfp8) {
  EXPECT_EQ(broken([](Case&) {}), "");
  EXPECT_EQ(broken([](Case& c) { c.plan.precision = Precision::bf16; }),
            "fused experts need precision fp8 with MXFP8 scaling; ");
  EXPECT_EQ(broken([](Case& c) { c.plan.fp8_scaling = Fp8Scaling::current; }),
            "fused experts need precision fp8 with MXFP8 scaling; ");
  EXPECT_EQ(broken([](Case& c) { c.model.gated_mlp = false; }), "fused experts need SwiGLU and etp = 1; ");
  EXPECT_EQ(broken([](Case& c) { c.plan.tp = c.plan.etp = 2, c.plan.sequence_parallel = true; }),
            "fused experts need SwiGLU and etp = 1; ");
  EXPECT_EQ(broken([](Case& c) { c.plan.core_release = 12; }),
            "fused experts apply the router weights in the activation; ");
  EXPECT_EQ(broken([](Case& c) { c.plan.recompute = Recompute::full; }),
            "the outputs of fused expert GEMMs cannot be recomputed; ");
  EXPECT_EQ(broken([](Case& c) {
              c.plan.recompute = Recompute::selective;
              c.plan.recompute_modules = {RecomputeModule::moe_act};
            }),
            "the outputs of fused expert GEMMs cannot be recomputed; ");
  EXPECT_EQ(broken([](Case& c) { c.model = read_model("llama3-8b"), c.plan.ep = 1; }),
            "the model has no experts; ");
}

}  // namespace
}  // namespace rehearse
