#include "plan/rules/rules.h"

#include <fmt/core.h>

#include <algorithm>

namespace rehearse {

namespace {

void check_layers(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations) {
  const std::int64_t layers = plan.recompute_layers;
  if (layers < 1 || layers > model.layers) {
    violations.push_back({"", "recompute_num_layers", "must be from 1 to the model's layers",
                          fmt::format("{} of {} layers", layers, model.layers),
                          std::to_string(std::clamp<std::int64_t>(layers, 1, model.layers))});
  }
  if (plan.recompute == Recompute::full) return;
  if (layers != 1 || plan.recompute_method != RecomputeMethod::uniform) {
    violations.push_back({"", "recompute_num_layers",
                          "a recompute method and a number of layers need full recompute",
                          fmt::format("recompute {}, method {}, {} layers", to_string(plan.recompute),
                                      to_string(plan.recompute_method), layers),
                          "recompute = full, or 1 with recompute_method = uniform"});
  }
}

bool has_module(const Model& model, RecomputeModule module) {
  switch (module) {
    case RecomputeModule::mla_up_proj:
      return model.latent.has_value();
    case RecomputeModule::moe:
    case RecomputeModule::moe_act:
      return model.experts.has_value();
    case RecomputeModule::shared_experts:
      return model.experts && model.experts->shared_ffn_hidden > 0;
    case RecomputeModule::mlp:
      return model.has_mlp();
    case RecomputeModule::core_attn:
      return model.attends();
    case RecomputeModule::layernorm:
      return true;
  }
  return false;
}

void check_each_module(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations) {
  const auto& modules = plan.recompute_modules;
  const bool all_of_moe = std::ranges::find(modules, RecomputeModule::moe) != modules.end();
  for (const RecomputeModule module : modules) {
    if (plan.recompute == Recompute::selective && !has_module(model, module))
      violations.push_back({"", "recompute_modules", "names a module that no layer of the model has",
                            fmt::format("{} of {}", to_string(module), model.name), "core_attn"});
    const bool inside = module == RecomputeModule::moe_act || module == RecomputeModule::shared_experts;
    if (all_of_moe && inside)
      violations.push_back({"", "recompute_modules", "module moe already contains this module",
                            fmt::format("moe and {}", to_string(module)), "moe"});
  }
}

void check_modules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations) {
  check_each_module(plan, model, violations);
  std::vector<RecomputeModule> modules = plan.recompute_modules;
  std::sort(modules.begin(), modules.end());
  const bool twice = std::adjacent_find(modules.begin(), modules.end()) != modules.end();
  if (modules.empty() || twice) {
    violations.push_back({"", "recompute_modules", "must name each module once, and at least one",
                          fmt::format("{} modules", modules.size()), "core_attn"});
  }
  if (plan.recompute != Recompute::selective && modules != std::vector{RecomputeModule::core_attn}) {
    violations.push_back({"", "recompute_modules", "the list of recompute modules needs selective recompute",
                          fmt::format("recompute {}", to_string(plan.recompute)),
                          "recompute = selective, or core_attn"});
  }
}

}  // namespace

void add_recompute_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& violations) {
  check_layers(plan, model, violations);
  check_modules(plan, model, violations);
}

}  // namespace rehearse
