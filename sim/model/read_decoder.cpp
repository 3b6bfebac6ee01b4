#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// The default of attention_factor is 0.1 ln(factor) + 1 (Peng et al. 2023, equation 22).
bool is_yarn_of(const JsonReader& scaling) {
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", ""));
  return type == "yarn" && scaling.number_or("factor", 1, 0, 1e6) > 1 &&
         scaling.number_or("attention_factor", 2, 0, 1e6) != 1;
}

}  // namespace

// transformers 5 writes rope_parameters, for all layers or by layer type (modeling_rope_utils.py).
bool is_yarn(const JsonReader& config) {
  if (config.has("rope_scaling")) return is_yarn_of(config.object("rope_scaling"));
  if (!config.has("rope_parameters")) return false;
  const JsonReader parameters = config.object("rope_parameters");
  for (const auto& [type, value] : parameters.json().items())
    if (value.is_object() && is_yarn_of(parameters.object(type))) return true;
  return is_yarn_of(parameters);
}

std::int64_t layers_of_list(const JsonReader& config, const std::string& key) {
  for (const char* list : {"layers_block_type", "layer_types", "mlp_layer_types"})
    if (config.has(list) && config.value(list).is_array() && !config.value(list).empty() &&
        config.value(list).size() <= static_cast<std::size_t>(bounds::kLayers))
      return static_cast<std::int64_t>(config.value(list).size());
  constexpr const char* kPattern = "hybrid_override_pattern";
  if (config.has(kPattern) && config.value(kPattern).is_string() && !config.text(kPattern).empty())
    return static_cast<std::int64_t>(config.text(kPattern).size());
  return config.integer(key, 1, bounds::kLayers);
}

}  // namespace rehearse
