// The type of a kernel alone says which calls it stands for, and the table of types says whether there are
// any.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/device.h"
#include "launch/calls.h"
#include "launch/small_llama.h"
#include "plan/work.h"

namespace rehearse {
namespace {

constexpr std::uintptr_t kFromMatrixToMatrix = std::uintptr_t{1} << 32;  // from one matrix to the next

Model gpt() {
  Model model = small_llama();
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = model.dropout = true;
  return model;
}

Model small_mixtral() {
  Model model = small_llama();
  model.experts = Experts{4, 2, 64, 96, 0, 1, true};
  return model;
}

Model olmo() {
  Model model = small_llama();
  model.norm = Norm::layer_plain;
  return model;
}

Model with_sinks() {
  Model model = small_llama();
  model.attention_sinks = true;
  return model;
}

Plan base_plan() {
  Plan plan;
  plan.seq = 64;
  plan.micro_batch = 2;
  return plan;
}

struct TypedCase {
  const char* name;
  Model (*model)();
  std::function<void(Plan&)> set;
};

const std::vector<TypedCase>& cases() {
  static const std::vector<TypedCase> all = {
      {"llama", small_llama, [](Plan&) {}},
      {"gpt", gpt, [](Plan& plan) { plan.fused_attention = false; }},
      {"mixtral", small_mixtral, [](Plan&) {}},
      {"olmo", olmo, [](Plan&) {}},
      {"sinks", with_sinks, [](Plan&) {}},
      {"eager sinks", with_sinks, [](Plan& plan) { plan.fused_attention = false; }},
      {"ring", small_llama, [](Plan& plan) { plan.cp = 2; }},
      {"gathered", with_sinks,
       [](Plan& plan) {
         plan.cp = 2;
         plan.cp_exchange = ContextExchange::gather;
       }},
      {"fp8", small_llama, [](Plan& plan) { plan.precision = Precision::fp8; }},
      {"fp8 attention", small_llama,
       [](Plan& plan) {
         plan.precision = Precision::fp8;
         plan.fp8_attention = true;
       }},
      {"fp8 by row", small_llama,
       [](Plan& plan) {
         plan.framework = Framework::torchtitan;
         plan.precision = Precision::fp8;
         plan.fp8_scaling = Fp8Scaling::row;
       }},
      {"fp4", small_llama, [](Plan& plan) { plan.precision = Precision::fp4; }},
      {"te loss", small_llama, [](Plan& plan) { plan.loss_fusion = LossFusion::te; }},
      {"te loss in place", small_llama, [](Plan& plan) { plan.loss_fusion = LossFusion::te_in_place; }},
      {"loss parallel", small_llama,
       [](Plan& plan) {
         plan.framework = Framework::torchtitan;
         plan.tp = 2;
         plan.sequence_parallel = true;
         plan.fused_cross_entropy = false;
       }},
      {"deepep", small_mixtral,
       [](Plan& plan) {
         plan.ep = plan.dp = 2;
         plan.dispatcher = Dispatcher::deepep;
       }},
      {"unfused permutation", small_mixtral, [](Plan& plan) { plan.fused_permute = false; }},
  };
  return all;
}

class KernelTypes : public ::testing::TestWithParam<TypedCase> {};

void visit_kernels(Work& work, const std::function<void(Block&, Kernel&)>& visit) {
  for (Block& block : work.blocks)
    for (auto* kernels : {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
      for (Kernel& kernel : *kernels)
        if (!std::holds_alternative<Collective>(kernel.what)) visit(block, kernel);
}

// On memory that nobody touches.
std::vector<kernels::Call> calls_on_nothing(const Block& block, const Kernel& kernel, const Model& model,
                                            const Plan& plan) {
  BoundBlock bound = bind_block(block, model, plan, [](TensorId id) {
    return reinterpret_cast<void*>((static_cast<std::uintptr_t>(id) + 1) * kFromMatrixToMatrix);
  });
  std::vector<std::int32_t> scratch(1 << 16), positions(1 << 10);
  bound.rows_of_choices = {scratch.data(), kernels::Type::int32, 1,
                           static_cast<std::int64_t>(scratch.size())};
  if (plan.cp > 1)
    bound.positions = {positions.data(), kernels::Type::int32, 1,
                       static_cast<std::int64_t>(positions.size())};
  return calls_of(bound, kernel);
}

TEST_P(KernelTypes, ThatAreTimedOrExecutedHaveCalls) {
  const Model model = GetParam().model();
  Plan plan = base_plan();
  GetParam().set(plan);
  Work work = make_work(model, plan);
  visit_kernels(work, [&](Block& block, Kernel& kernel) {
    const KernelSupport support = support_of(block, kernel, plan.precision);
    EXPECT_TRUE(support.priced) << kernel.name;
    if (support.timed) {
      EXPECT_FALSE(calls_on_nothing(block, kernel, model, plan).empty()) << kernel.name;
    } else if (std::holds_alternative<Pointwise>(kernel.what)) {
      EXPECT_TRUE(calls_on_nothing(block, kernel, model, plan).empty()) << kernel.name;
    }
  });
}

std::vector<std::size_t> kinds_of(const std::vector<kernels::Call>& calls) {
  std::vector<std::size_t> kinds;
  for (const kernels::Call& call : calls) kinds.push_back(call.index());
  return kinds;
}

TEST_P(KernelTypes, SayWhichCallsWhateverAKernelIsCalled) {
  const Model model = GetParam().model();
  Plan plan = base_plan();
  GetParam().set(plan);
  Work work = make_work(model, plan);
  visit_kernels(work, [&](Block& block, Kernel& kernel) {
    const KernelSupport support = support_of(block, kernel, plan.precision);
    if (!support.timed) return;
    const std::vector<std::size_t> expected = kinds_of(calls_on_nothing(block, kernel, model, plan));
    Kernel other = kernel;
    other.name = "x" + kernel.name + "x";
    EXPECT_EQ(kinds_of(calls_on_nothing(block, other, model, plan)), expected) << kernel.name;
    EXPECT_EQ(support_of(block, other, plan.precision).type, support.type);
  });
}

INSTANTIATE_TEST_SUITE_P(Works, KernelTypes, ::testing::ValuesIn(cases()), [](const auto& which) {
  std::string name = which.param.name;
  for (char& letter : name)
    if (letter == ' ') letter = '_';
  return name;
});

TEST(KernelTypes, AreListedOnceEach) {
  std::vector<std::string> names;
  for (const KernelSupport& support : all_kernel_support()) names.push_back(support.type);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace rehearse
