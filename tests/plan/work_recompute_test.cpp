// Activations that each form of recompute keeps, and kernels that it runs again.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "work_case.h"

namespace rehearse {
namespace {

Case full_case(RecomputeMethod method, std::int64_t layers) {
  Case c{gpt(12, 64, 4, 128, 32), {}};
  c.plan.pp = 2;
  c.plan.seq = 32;
  c.plan.recompute = Recompute::full;
  c.plan.recompute_method = method;
  c.plan.recompute_layers = layers;
  return c;
}

double recompute_share(const Case& c) {
  const FlopCount count = count_flops(make_work(c.model, c.plan), c.plan);
  const FlopCount once = count_flops(make_work(c.model, full_case(RecomputeMethod::uniform, 1).plan), c.plan);
  return count.recompute / once.recompute;
}

TEST(Recompute, UniformKeepsEveryNthInputAndRunsEveryLayerAgain) {
  for (const int unit : {1, 2, 3, 4, 6}) {
    const Case c = full_case(RecomputeMethod::uniform, unit);
    const Work work = make_work(c.model, c.plan);
    const double input = 2.0 * 32 * 64;
    const double embedding = saved_bytes(block_called(work, "embedding"));
    const int groups = (6 + unit - 1) / unit;
    EXPECT_EQ(work.saved_bytes(0), embedding + groups * input) << unit;
    EXPECT_DOUBLE_EQ(recompute_share(c), 1) << unit;
  }
}

TEST(Recompute, BlockRunsTheFirstLayersOfEachStageAgain) {
  for (const int layers : {1, 4, 6, 12}) {
    const Case c = full_case(RecomputeMethod::block, layers);
    EXPECT_DOUBLE_EQ(recompute_share(c), std::min(layers, 6) / 6.0) << layers;
  }
}

TEST(Recompute, ChangesNoParameterAndNoModelFlop) {
  const Case uniform = full_case(RecomputeMethod::uniform, 4), block = full_case(RecomputeMethod::block, 4);
  Plan none = uniform.plan;
  none.recompute = Recompute::none;
  none.recompute_layers = 1;
  const Work plain = make_work(uniform.model, none);
  for (const Case& c : {uniform, block}) {
    const Work work = make_work(c.model, c.plan);
    EXPECT_EQ(work.parameters(0), plain.parameters(0));
    EXPECT_EQ(work.parameters(1), plain.parameters(1));
    EXPECT_EQ(count_flops(work, c.plan).model(), count_flops(plain, none).model());
  }
}

// Layers alone: F + R + B = 4/3 of F + B, for every method (Narayanan et al. 2021, section 5.1).
RC_GTEST_PROP(Recompute, OfAllLayersIsOneMoreForward, ()) {
  Case c = any_gpt();
  c.plan.recompute = Recompute::full;
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "layer");
  const auto flops_of = [](const std::vector<Kernel>& kernels) {
    double sum = 0;
    for (const Kernel& kernel : kernels) sum += flops(kernel);
    return sum;
  };
  RC_ASSERT(flops_of(layer.recompute) == flops_of(layer.forward));
}

// Korthikanti et al. 2022, section 4: of 34 sbh a layer, both norms' outputs are 4. The MLP's own tensors are
// 16 (up 8 and activated 8), where it keeps its input.
RC_GTEST_PROP(Recompute, OfModulesDropsWhatTheyMake, ()) {
  Case c = any_gpt();
  c.plan.fused_attention = true;
  c.plan.sequence_parallel = true;
  const double unit = double(c.plan.seq) * double(c.plan.micro_batch) * double(c.model.hidden) / c.plan.tp;
  const double none = saved_bytes(block_called(make_work(c.model, c.plan), "layer"));
  const auto dropped = [&](std::vector<RecomputeModule> modules) {
    Plan plan = c.plan;
    plan.recompute = Recompute::selective;
    plan.recompute_modules = std::move(modules);
    return none - saved_bytes(block_called(make_work(c.model, plan), "layer"));
  };
  RC_ASSERT(dropped({RecomputeModule::layernorm}) == 4 * unit);
  RC_ASSERT(dropped({RecomputeModule::mlp}) == 16 * unit);
  RC_ASSERT(dropped({RecomputeModule::layernorm, RecomputeModule::mlp}) == 20 * unit);
  const double core = dropped({RecomputeModule::core_attn});
  RC_ASSERT(dropped({RecomputeModule::mlp, RecomputeModule::core_attn}) == 16 * unit + core);
}

// Every second one of wq, wk, wv, wo, w1, w3 and w2 is recomputed (torchtitan v0.2,
// distributed/activation_checkpoint.py). The others, the input and attention's output are kept.
TEST(Recompute, ByOpKeepsAttentionAndEverySecondProduct) {
  Case c{llama(2, 64, 8, 2, 160, 512), {}};
  c.plan.seq = 32;
  c.plan.recompute = Recompute::op;
  const Work work = make_work(c.model, c.plan);
  const Block& layer = block_called(work, "layer");
  std::vector<std::string> names, kept;
  double products = 0;
  for (const Kernel& kernel : layer.recompute) {
    names.push_back(kernel.name);
    products += flops(kernel);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"attention_norm", "qkv_key", "rotary", "projection",
                                             "attention_residual", "mlp_norm", "mlp_up_up", "activation"}));
  EXPECT_DOUBLE_EQ(products, 2.0 * 32 * 64 * (16 + 64 + 160));
  for (const TensorId id : layer.saved) {
    const Tensor& tensor = layer.tensors[static_cast<std::size_t>(id)];
    if (tensor.role == TensorRole::activation || tensor.role == TensorRole::input)
      kept.push_back(tensor.name);
  }
  EXPECT_EQ(kept, (std::vector<std::string>{"input", "query", "value", "attended", "log_sum_exp", "gate"}));
}

TEST(Recompute, RulesNameTheNearestLegalValues) {
  const auto broken = [](Case c, auto change) {
    change(c.plan);
    std::vector<std::string> fields;
    for (const Violation& violation : broken_rules(c.plan, c.model, c.plan.gpus())) {
      EXPECT_FALSE(violation.nearest.empty());
      fields.push_back(violation.pointer);
    }
    return fields;
  };
  using Fields = std::vector<std::string>;
  const Case c = full_case(RecomputeMethod::uniform, 2);
  EXPECT_EQ(broken(c, [](Plan&) {}), Fields{});
  EXPECT_EQ(broken(c, [](Plan& p) { p.recompute_layers = 0; }), Fields{"recompute_num_layers"});
  EXPECT_EQ(broken(c, [](Plan& p) { p.recompute_layers = 13; }), Fields{"recompute_num_layers"});
  EXPECT_EQ(broken(c, [](Plan& p) { p.recompute = Recompute::none; }), Fields{"recompute_num_layers"});
  EXPECT_EQ(broken(c, [](Plan& p) { p.recompute_modules = {RecomputeModule::mlp}; }),
            Fields{"recompute_modules"});
  EXPECT_EQ(broken(c, [](Plan& p) { p.recipe = Recipe::fp8_weights; }), Fields{"recipe"});
  EXPECT_EQ(broken(c, [](Plan& p) { p.recipe = Recipe::bf16, p.precision = Precision::fp16; }),
            Fields{"recipe"});
  EXPECT_EQ(broken(c, [](Plan& p) { p.fp8_weight_copies = 1; }), Fields{"fp8_weight_copies"});
  const auto fp8 = [](Plan& p, int copies) {
    p.precision = Precision::fp8;
    p.recipe = Recipe::fp8_weights;
    p.fp8_weight_copies = copies;
  };
  EXPECT_EQ(broken(c, [fp8](Plan& p) { fp8(p, 1); }), Fields{});
  const auto scaled = [](Plan& p, Framework framework) {
    p.precision = Precision::fp8;
    p.framework = framework;
    p.fp8_scaling = Fp8Scaling::row;
  };
  EXPECT_EQ(broken(c, [scaled](Plan& p) { scaled(p, Framework::torchtitan); }), Fields{});
  EXPECT_EQ(broken(c, [scaled](Plan& p) { scaled(p, Framework::megatron_core); }), Fields{"fp8_scaling"});
  EXPECT_EQ(broken(c, [fp8](Plan& p) { fp8(p, 3); }), Fields{"fp8_weight_copies"});
  for (const Recipe recipe : {Recipe::deepspeed_bf16, Recipe::nanotron}) {
    EXPECT_EQ(broken(c, [recipe](Plan& p) { p.recipe = recipe, p.precision = Precision::fp16; }),
              Fields{"recipe"});
    EXPECT_EQ(broken(c, [recipe](Plan& p) { p.recipe = recipe; }), Fields{});
    const Fields sharded = broken(c, [recipe](Plan& p) { p.recipe = recipe, p.zero = 2; });
    EXPECT_EQ(std::count(sharded.begin(), sharded.end(), "recipe"), 1);
  }
  EXPECT_EQ(broken(c, [](Plan& p) { p.recipe = Recipe::autocast, p.precision = Precision::fp16; }), Fields{});
  const Fields cast = broken(c, [](Plan& p) { p.recipe = Recipe::autocast, p.zero = 3; });
  EXPECT_EQ(std::count(cast.begin(), cast.end(), "recipe"), 1);
  EXPECT_EQ(broken(c, [](Plan& p) { p.recipe = Recipe::zero, p.precision = Precision::fp32; }),
            Fields{"recipe"});
}

}  // namespace
}  // namespace rehearse
