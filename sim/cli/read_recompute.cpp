#include "cli/read_recompute.h"

#include "cli/by_name.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMostLayers = std::int64_t{1} << 40;

}  // namespace

void read_recompute(const JsonReader& json, Plan& plan) {
  static const auto granularities = by_name(kRecomputes);
  static const auto methods = by_name(std::array{RecomputeMethod::uniform, RecomputeMethod::block});
  static const auto recipes = by_name(std::array{Recipe::megatron, Recipe::zero, Recipe::sagemaker,
                                                 Recipe::deepspeed_bf16, Recipe::nanotron, Recipe::fsdp,
                                                 Recipe::autocast, Recipe::bf16, Recipe::fp8_weights});
  plan.recompute = json.choice_or("recompute", Recompute::none, granularities);
  plan.recompute_method = json.choice_or("recompute_method", RecomputeMethod::uniform, methods);
  plan.recompute_layers = json.integer_or("recompute_num_layers", 1, 0, kMostLayers);
  if (json.has("recompute_modules"))
    plan.recompute_modules = read_names(json, "recompute_modules", by_name(kRecomputeModules),
                                        "is no module that recompute knows");
  plan.recompute_early_stop = json.boolean_or("recompute_early_stop", plan.recompute_early_stop);
  plan.recipe = json.choice_or("recipe", plan.recipe, recipes);
  plan.fp8_scaling = json.choice_or("fp8_scaling", Fp8Scaling::tensor, by_name(kFp8Scalings));
  const bool once =
      plan.fp8_either_layout && plan.recipe == Recipe::fp8_weights && plan.fp8_scaling != Fp8Scaling::mx;
  plan.fp8_weight_copies = static_cast<int>(json.integer_or("fp8_weight_copies", once ? 1 : 2, 1, 2));
}

}  // namespace rehearse
