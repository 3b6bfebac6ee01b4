#include <fmt/core.h>

#include <algorithm>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// Step 3.5 writes "3,4,5".
Json numbers_of(const Json& list) {
  if (!list.is_string()) return list;
  const Json numbers = Json::parse("[" + list.get<std::string>() + "]", nullptr, false);
  return numbers.is_array() ? numbers : list;
}

// Turns a list of layer numbers into marks: `listed` for each listed layer, the other mark for the rest.
std::string marked(const FamilyConfig& config, const std::string& part, std::int64_t layers, char listed) {
  std::string marks(static_cast<std::size_t>(layers), listed == '1' ? '0' : '1');
  const Json list = numbers_of(config.value(part));
  if (!list.is_array()) config.fail(part, "must be an array of layers", "found " + list.dump());
  for (const Json& layer : list) {
    if (!layer.is_number_integer() || layer.get<std::int64_t>() < 0 || layer.get<std::int64_t>() >= layers)
      config.fail(part, fmt::format("must name layers from 0 to {}", layers - 1), "found " + layer.dump());
    marks[layer.get<std::size_t>()] = listed;
  }
  return marks;
}

std::string marked_types(const FamilyConfig& config, const std::string& part, std::int64_t layers) {
  const Json& types = config.value(part);
  if (!types.is_array() || types.size() != static_cast<std::size_t>(layers))
    config.fail(part, "must name the MLP of each layer",
                fmt::format("{} names, {} layers", types.size(), layers));
  std::string marks;
  for (const Json& type : types) {
    if (type != "sparse" && type != "dense")
      config.fail(part, "must be dense or sparse", "found " + type.dump(), "sparse");
    marks += type == "sparse" ? '1' : '0';
  }
  return marks;
}

// Jamba: one layer of each period has experts.
std::string periodic(const FamilyConfig& config, std::int64_t layers) {
  const std::int64_t period = config.integer("expert_layer_period", 1, bounds::kLayers);
  const std::int64_t offset = config.integer_or("expert_layer_offset", period - 1, 0, period - 1);
  std::string marks;
  for (std::int64_t layer = 0; layer < layers; ++layer) marks += layer % period == offset ? '1' : '0';
  return marks;
}

// Layers with experts: by rule, and by lists that newer files have in place of the rule or beside it.
void read_sparse_layers(const FamilyConfig& config, std::int64_t layers, Experts& experts) {
  experts.every = config.integer_or("decoder_sparse_step", 1, 1, bounds::kLayers);
  experts.first_layer = config.integer_or("first_k_dense_replace", 0, 0, layers);
  std::string marks(static_cast<std::size_t>(layers), '1');
  const auto meet = [&](const std::string& more) {
    for (std::size_t layer = 0; layer < marks.size(); ++layer)
      if (more[layer] == '0') marks[layer] = '0';
  };
  if (config.has("sparse_marks") && config.value("sparse_marks") != 1)
    meet(listed_marks(config, "sparse_marks", layers));
  if (config.has("moe_layers")) meet(marked(config, "moe_layers", layers, '1'));
  if (config.has("mlp_only_layers")) meet(marked(config, "mlp_only_layers", layers, '0'));
  if (config.has("expert_layer_period")) meet(periodic(config, layers));
  if (config.has("mlp_layer_types")) meet(marked_types(config, "mlp_layer_types", layers));
  if (const std::int64_t last = config.integer_or("moe_layer_end_index", -1, -1, layers); last >= 0)
    for (std::int64_t layer = last + 1; layer < layers; ++layer) marks[static_cast<std::size_t>(layer)] = '0';

  const auto ruled = [&](std::int64_t layer) {
    return layer >= experts.first_layer && (layer + 1) % experts.every == 0;
  };
  const auto dense = static_cast<std::int64_t>(std::min(marks.find('1'), marks.size()));
  if (marks.find('0', static_cast<std::size_t>(dense)) == std::string::npos) {
    experts.first_layer = std::max(experts.first_layer, dense);
    return;
  }
  for (std::int64_t layer = 0; layer < layers; ++layer)
    if (!ruled(layer)) marks[static_cast<std::size_t>(layer)] = '0';
  experts.layers = marks;
}

// Summed width of the shared experts: a key, or their number times a routed expert's width.
std::int64_t shared_width(const FamilyConfig& config, const Experts& experts) {
  if (config.has("shared_expert_intermediate_size"))
    return config.integer("shared_expert_intermediate_size", 0, bounds::kFfnHidden);
  // At most 16 shared experts of the largest width, so that their sum stays within its own bound.
  return experts.ffn_hidden * config.integer_or("n_shared_experts", 0, 0, 16);
}

}  // namespace

Experts read_experts(const FamilyConfig& config, std::int64_t layers) {
  Experts experts;
  experts.count = config.integer("num_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("moe_intermediate_size", 1, bounds::kExpertFfnHidden);
  experts.shared_ffn_hidden = shared_width(config, experts);
  experts.shared_gate = experts.shared_ffn_hidden > 0 && config.boolean("shared_expert_gate");
  experts.router_bias = config.boolean("router_bias");
  experts.own_norms = config.boolean("experts_own_norms");
  experts.latent = config.integer_or("experts_latent", 0, 1, bounds::kHidden);
  experts.latent_norm = experts.latent > 0 && config.boolean("latent_norm");
  experts.linear_bias = config.boolean("moe_linear_bias");
  experts.clamped = config.number_or("swiglu_limit", 0, 0, bounds::kSwigluLimit) > 0;
  read_sparse_layers(config, layers, experts);
  return experts;
}

}  // namespace rehearse
