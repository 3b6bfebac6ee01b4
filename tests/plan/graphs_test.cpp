// Which kernels of a layer does a CUDA graph contain, and which modules does Megatron core require?
#include "plan/graphs.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "plan/work.h"
#include "small_model.h"

namespace rehearse {
namespace {

constexpr auto has_experts = true;

Model model(bool experts, std::int64_t first_layer = 0) {
  Model model = test::small_model();
  if (!experts) return model;
  model.experts = Experts{};
  model.experts->count = 8;
  model.experts->per_token = 2;
  model.experts->ffn_hidden = model.ffn_hidden;
  model.experts->first_layer = first_layer;
  return model;
}

Plan graphed(std::vector<GraphModule> modules) {
  Plan plan;
  plan.ep = plan.dp = 2;
  plan.global_batch = 8;
  plan.cuda_graph = true;
  plan.cuda_graph_modules = std::move(modules);
  return plan;
}

// Names of the kernels that are launched one by one.
std::set<std::string> left(const std::vector<Kernel>& kernels, const GraphedParts& parts) {
  std::set<std::string> names;
  for (const Kernel& kernel : kernels)
    if (!parts[static_cast<std::size_t>(kernel.part)]) names.insert(kernel.name);
  return names;
}

TEST(Graphs, OfAttentionAndMlpHoldAWholeDenseLayer) {
  const Plan plan = graphed({GraphModule::attn, GraphModule::mlp});
  Plan of = plan;
  of.ep = 1;
  const Work work = make_work(model(false), of);
  for (const Block& block : work.blocks) {
    const bool whole = block.name == "layer";
    for (const auto* kernels : {&block.forward, &block.backward_input, &block.backward_weight})
      EXPECT_EQ(left(*kernels, graphed_parts(plan)).empty(), whole || kernels->empty()) << block.name;
  }
}

TEST(Graphs, OfTheRouterLeaveExchangesAndExperts) {
  const Plan plan = graphed({GraphModule::attn, GraphModule::moe_router, GraphModule::moe_preprocess});
  for (const Dispatcher dispatcher : kDispatchers) {
    Plan of = plan;
    of.dispatcher = dispatcher;
    const Work work = make_work(model(has_experts), of);
    const Block& layer = work.blocks[1];
    ASSERT_EQ(layer.name, "sparse_layer");
    const std::set<std::string> names = left(layer.forward, graphed_parts(plan));
    EXPECT_TRUE(names.contains("dispatch") && names.contains("experts_up") && names.contains("combine"));
    EXPECT_FALSE(names.contains("qkv") || names.contains("router") || names.contains("mlp_norm"));
    EXPECT_EQ(names.contains("permute"), dispatcher != Dispatcher::all_to_all)
        << "DeepEP and HybridEP permute what has arrived";
    const std::set<std::string> back = left(layer.backward_input, graphed_parts(plan));
    EXPECT_TRUE(back.contains("dispatch_backward") && back.contains("experts_up_input_gradient"));
    EXPECT_FALSE(back.contains("qkv_input_gradient") || back.contains("router_input_gradient"));
  }
}

TEST(Graphs, AreNoneWithoutModules) {
  EXPECT_EQ(graphed_parts(graphed({})), GraphedParts{}) << "whole passes are";
  Plan off = graphed({GraphModule::attn});
  off.cuda_graph = false;
  EXPECT_EQ(graphed_parts(off), GraphedParts{});
}

std::string broken(const Plan& plan, const Model& of) {
  std::string rules;
  for (const Violation& violation : broken_rules(plan, of, plan.gpus()))
    if (violation.pointer == "cuda_graph_modules") rules += violation.rule + "; ";
  return rules;
}

TEST(GraphRules, TakeWhatMegatronCoreTakes) {
  const Model sparse = model(has_experts);
  EXPECT_EQ(broken(graphed({GraphModule::attn}), sparse), "");
  EXPECT_EQ(
      broken(graphed({GraphModule::attn, GraphModule::moe_router, GraphModule::moe_preprocess}), sparse), "");
  Plan padded = graphed({GraphModule::attn, GraphModule::moe});
  padded.moe_capacity = 1.5;
  EXPECT_EQ(broken(padded, sparse), "");
  EXPECT_EQ(broken(graphed({GraphModule::mlp}), model(has_experts, 1)), "") << "its first layer is dense";
}

TEST(GraphRules, NameEachOther) {
  using enum GraphModule;
  const struct {
    std::vector<GraphModule> modules;
    std::function<void(Plan&)> change;
    std::string rule;
  } cases[] = {
      {{attn, attn}, [](Plan&) {}, "must name each module once; "},
      {{attn}, [](Plan& p) { p.cuda_graph = false; }, "the list of CUDA graph modules needs CUDA graphs; "},
      {{mlp}, [](Plan&) {}, "names a module that no layer of the model has; "},
      {{moe, moe_router},
       [](Plan& p) { p.moe_capacity = 1; },
       "module moe already contains moe_router and moe_preprocess; "},
      {{moe_preprocess}, [](Plan&) {}, "module moe_preprocess needs module moe_router; "},
      {{moe}, [](Plan&) {}, "a CUDA graph of experts needs a fixed number of tokens per expert; "},
      {{attn},
       [](Plan& p) { p.recompute = Recompute::full; },
       "full recompute needs CUDA graphs of whole passes, not of modules; "},
      {{moe_router},
       [](Plan& p) { p.recompute = Recompute::selective, p.recompute_modules = {RecomputeModule::moe}; },
       "a recomputed module must lie inside one CUDA graph; "},
      {{moe},
       [](Plan& p) { p.moe_capacity = 1, p.overlap_experts = true; },
       "overlap of experts cannot split a CUDA graph of the whole MLP; "},
      {{attn},
       [](Plan& p) { p.offload = Offload::activations; },
       "activation offload does not work with CUDA graphs of modules; "},
  };
  for (const auto& [modules, change, rule] : cases) {
    Plan plan = graphed(modules);
    change(plan);
    EXPECT_EQ(broken(plan, model(has_experts)), rule);
  }
  EXPECT_EQ(broken(graphed({moe_router}), model(false)), "names a module that no layer of the model has; ");
}

}  // namespace
}  // namespace rehearse
