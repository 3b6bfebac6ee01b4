#include "cli/read_recompute.h"

#include <fmt/core.h>

#include <sstream>

#include "cli/by_name.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMostLayers = std::int64_t{1} << 40;

// "core_attn,mlp", or an array of names.
std::vector<RecomputeModule> read_modules(const JsonReader& plan) {
  static const auto names = by_name(kRecomputeModules);
  std::vector<std::string> known;
  for (const auto& [name, module] : names) known.push_back(name);
  std::vector<RecomputeModule> modules;
  const Json& given = plan.value("recompute_modules");
  std::vector<std::string> words;
  if (given.is_string()) {
    std::istringstream list(given.get<std::string>());
    for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  } else if (given.is_array()) {
    for (const Json& entry : given)
      words.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
  } else {
    plan.fail("recompute_modules", "must be an array of module names", "found " + given.dump());
  }
  for (const std::string& word : words) {
    if (!names.contains(word)) {
      plan.fail("recompute_modules", "is no module that recompute knows", fmt::format("found \"{}\"", word),
                join(known));
    }
    modules.push_back(names.at(word));
  }
  return modules;
}

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
  if (json.has("recompute_modules")) plan.recompute_modules = read_modules(json);
  plan.recompute_early_stop = json.boolean_or("recompute_early_stop", plan.recompute_early_stop);
  plan.recipe = json.choice_or("recipe", plan.recipe, recipes);
  plan.fp8_scaling = json.choice_or("fp8_scaling", Fp8Scaling::tensor, by_name(kFp8Scalings));
  plan.fp8_weight_copies = static_cast<int>(json.integer_or("fp8_weight_copies", 2, 1, 2));
}

}  // namespace rehearse
