// Layers that mix tokens by a state space or by attention, each followed by an MLP or experts.
#include <fmt/core.h>

#include <algorithm>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

StateSpace state_space_of(const FamilyConfig& config, std::int64_t default_heads) {
  StateSpace space;
  const bool is_open = default_heads > 0 && !config.has("mamba_n_heads");
  space.heads = is_open ? default_heads : config.integer("mamba_n_heads", 1, bounds::kHeads);
  space.head_dim = config.integer("mamba_d_head", 1, bounds::kHeadDim);
  space.groups = config.integer_or("mamba_n_groups", 1, 1, bounds::kHeads);
  space.state = config.integer("mamba_d_state", 1, bounds::kState);
  space.convolution = config.integer_or("mamba_d_conv", 4, 1, bounds::kConvolution);
  space.chunk = config.integer_or("mamba_chunk_size", 256, 1, bounds::kChunk);
  space.norm = config.boolean("mamba_norm", true);
  return space;
}

namespace {

// M or * for each layer. A file lists the kinds, or the numbers of the layers that attend.
std::string mixers(const FamilyConfig& config, std::int64_t layers) {
  const auto count = static_cast<std::size_t>(layers);
  const bool lists = config.has("attn_layer_indices") && !config.has("layer_types");
  const std::string part = lists ? "attn_layer_indices" : "layer_types";
  const Json& list = config.value(part);
  if (!list.is_array() || (!lists && list.size() != count))
    config.fail(part, "must name the kind of each layer", fmt::format("{}, {} layers", list.dump(), layers));
  std::string pattern(count, lists ? 'M' : '*');
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& found = list[i];
    const bool legal = lists ? found.is_number_unsigned() && found < layers
                             : found == "mamba" || found == "attention" || found == "full_attention";
    if (!legal)
      config.file().fail(
          fmt::format("{}/{}", config.name(part), i),
          lists ? "must be a layer" : "must be mamba or attention: no other kind has kernels here",
          "found " + found.dump(), lists ? "0" : "attention");
    if (lists)
      pattern[found.get<std::size_t>()] = '*';
    else if (found == "mamba")
      pattern[i] = 'M';
  }
  return pattern;
}

}  // namespace

// transformers (Mamba2Config) refuses heads that do not fill the expanded width. Other programs leave the
// heads out of the file, and take as many as fill it.
StateSpace expanded_state_space(const FamilyConfig& config, Model& model) {
  constexpr std::int64_t kDefaultHeads = 128;
  StateSpace space = state_space_of(config, kDefaultHeads);
  const std::int64_t width = model.hidden * config.integer_or("mamba_expand", 2, 1, 64);
  if (space.heads * space.head_dim == width) return space;
  const std::int64_t fitting = std::clamp<std::int64_t>(width / space.head_dim, 1, bounds::kHeads);
  if (config.has("mamba_n_heads") || fitting * space.head_dim != width)
    config.fail("mamba_n_heads", fmt::format("heads of {} must fill the width of {}", space.head_dim, width),
                fmt::format("{} heads", space.heads), std::to_string(fitting));
  space.heads = fitting;
  model.warnings.push_back(fmt::format("{} is not given: {} heads fill the width of {}",
                                       config.name("mamba_n_heads"), fitting, width));
  return space;
}

void read_blocks(const FamilyConfig& config, Model& model) {
  if (config.boolean("mamba_beside_attention")) {
    model.mamba_beside_attention = true;
    model.state_space = state_space_of(config);
    for (const char* key : {"mamba_proj_bias", "projectors_bias"})
      if (config.file().boolean_or(key, false)) model.not_modelled.emplace_back(key);
    return;
  }
  if (config.boolean("mixers_alone")) {
    model.pattern.assign(static_cast<std::size_t>(model.layers), 'M');
    if (!model.recurrence) model.state_space = expanded_state_space(config, model);
    if (config.file().boolean_or("use_bias", false)) model.not_modelled.emplace_back("use_bias");
    return;
  }
  const std::string kinds = mixers(config, model.layers);
  if (kinds.find('M') == std::string::npos) return;  // all layers are transformer layers
  model.state_space = state_space_of(config);
  for (const char kind : kinds) model.pattern += {kind, model.experts ? 'E' : '-'};
  model.layers *= 2;
  for (const char* key : {"mamba_proj_bias", "attention_bias"})
    if (config.file().boolean_or(key, false)) model.not_modelled.emplace_back(key);
}

}  // namespace rehearse
