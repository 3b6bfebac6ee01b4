#include "plan/graphs.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse {

namespace {

bool has(const Plan& plan, GraphModule module) {
  return std::ranges::find(plan.cuda_graph_modules, module) != plan.cuda_graph_modules.end();
}

class GraphRules {
 public:
  GraphRules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations)
      : plan_(plan), model_(model), violations_(violations) {}

  void check() {
    std::vector<GraphModule> sorted = plan_.cuda_graph_modules;
    std::ranges::sort(sorted);
    forbid(std::ranges::adjacent_find(sorted) != sorted.end(), "must name each module once",
           fmt::format("{} modules", sorted.size()), "attn");
    forbid(!plan_.cuda_graph, "the list of CUDA graph modules needs CUDA graphs", "cuda_graph is off",
           "cuda_graph = on");
    of_layers();
    of_passes();
  }

 private:
  void of_layers() {
    const bool moe = has(plan_, GraphModule::moe), router = has(plan_, GraphModule::moe_router);
    const bool prepares = has(plan_, GraphModule::moe_preprocess);
    for (const GraphModule module : plan_.cuda_graph_modules)
      forbid(!in_model(module), "names a module that no layer of the model has",
             fmt::format("{} of {}", to_string(module), model_.name), "attn");
    forbid(moe && (router || prepares), "module moe already contains moe_router and moe_preprocess",
           router ? "moe and moe_router" : "moe and moe_preprocess", "moe");
    forbid(prepares && !router && !moe, "module moe_preprocess needs module moe_router",
           "moe_preprocess without moe_router", "moe_router,moe_preprocess");
    forbid(moe && plan_.moe_capacity <= 0,
           "a CUDA graph of experts needs a fixed number of tokens per expert", "moe without a capacity",
           "moe_router,moe_preprocess, or moe_capacity = 1");
  }

  void of_passes() {
    const bool whole_mlp = has(plan_, GraphModule::moe) || has(plan_, GraphModule::mlp);
    forbid(plan_.recompute == Recompute::full || plan_.recompute == Recompute::op,
           "full recompute needs CUDA graphs of whole passes, not of modules",
           fmt::format("recompute {}", to_string(plan_.recompute)), "recompute = none");
    const auto& again = plan_.recompute_modules;
    forbid(plan_.recompute == Recompute::selective && has(plan_, GraphModule::moe_router) &&
               std::ranges::find(again, RecomputeModule::moe) != again.end(),
           "a recomputed module must lie inside one CUDA graph", "recompute of moe, CUDA graph of moe_router",
           "recompute_modules = moe_act");
    forbid(plan_.overlap_experts && whole_mlp,
           "overlap of experts cannot split a CUDA graph of the whole MLP", "overlap_experts is on",
           "overlap_experts = off, or attn,moe_router,moe_preprocess");
    forbid(plan_.offload == Offload::activations,
           "activation offload does not work with CUDA graphs of modules", "offload activations",
           "offload = none");
  }

  bool in_model(GraphModule module) const {
    switch (module) {
      case GraphModule::attn:
        return model_.attends();
      case GraphModule::mamba:
        return model_.has_layer_of(LayerType::mamba);
      case GraphModule::mlp:
        return model_.has_mlp();
      default:
        return model_.experts.has_value();
    }
  }

  void forbid(bool broken, const char* rule, std::string found, std::string instead) {
    if (broken) violations_.push_back({"", "cuda_graph_modules", rule, std::move(found), std::move(instead)});
  }

  const Plan& plan_;
  const Model& model_;
  std::vector<BrokenRule>& violations_;
};

}  // namespace

GraphedParts graphed_parts(const Plan& plan) {
  GraphedParts graphed{};
  if (!plan.cuda_graph) return graphed;
  const auto holds = [&graphed](LayerPart part) { graphed[static_cast<std::size_t>(part)] = true; };
  if (has(plan, GraphModule::attn)) holds(LayerPart::attention);
  if (has(plan, GraphModule::mamba)) holds(LayerPart::mamba);
  if (has(plan, GraphModule::mlp)) holds(LayerPart::mlp);
  const bool moe = has(plan, GraphModule::moe);
  if (moe || has(plan, GraphModule::moe_router)) holds(LayerPart::router);
  if (moe || has(plan, GraphModule::moe_preprocess)) holds(LayerPart::dispatch);
  if (moe) holds(LayerPart::experts);
  return graphed;
}

void add_graph_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations) {
  if (!plan.cuda_graph_modules.empty()) GraphRules(plan, model, violations).check();
}

}  // namespace rehearse
