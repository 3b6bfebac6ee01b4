// Which mixers replace attention, and in which layers? Which keys does attention see?
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

Recurrence delta_rule(const FamilyConfig& config) {
  Recurrence of{RecurrenceKind::gated_delta_rule};
  of.key_heads = config.integer("linear_num_key_heads", 1, bounds::kHeads);
  of.value_heads = config.integer("linear_num_value_heads", 1, bounds::kHeads);
  of.key_head_dim = config.integer("linear_key_head_dim", 1, bounds::kHeadDim);
  of.value_head_dim = config.integer("linear_value_head_dim", 1, bounds::kHeadDim);
  of.convolution = config.integer_or("linear_conv_kernel_dim", 4, 1, bounds::kConvolution);
  return of;
}

// Kimi Linear's layers are numbered from 1.
Recurrence kimi_delta(const FamilyConfig& config) {
  Recurrence of{RecurrenceKind::kimi_delta};
  of.key_heads = of.value_heads = config.integer("linear_num_key_heads", 1, bounds::kHeads);
  of.key_head_dim = of.value_head_dim = config.integer("linear_key_head_dim", 1, bounds::kHeadDim);
  of.convolution = config.integer_or("linear_conv_kernel_dim", 4, 1, bounds::kConvolution);
  of.full_rank_gate = config.boolean("full_rank_gate");
  return of;
}

std::string kimi_layers(const FamilyConfig& config, std::int64_t layers) {
  std::string marks(static_cast<std::size_t>(layers), '0');
  for (const Json& layer : config.value("kda_layers")) {
    if (!layer.is_number_unsigned() || layer < 1 || layer > layers)
      config.fail("kda_layers", fmt::format("must name layers from 1 to {}", layers),
                  "found " + layer.dump());
    marks[layer.get<std::size_t>() - 1] = '1';
  }
  return marks;
}

Recurrence lightning(const FamilyConfig& config, const Model& model) {
  Recurrence of{RecurrenceKind::lightning, model.heads, model.heads, model.head_dim, model.head_dim};
  of.chunk = config.integer_or("block_size", 256, 1, bounds::kChunk);
  return of;
}

// transformers, JambaConfig and MambaConfig: "auto" is a sixteenth of the hidden size.
std::int64_t step_rank(const FamilyConfig& config, const Model& model) {
  constexpr std::int64_t kHiddenOfRank = 16;
  const std::string part = "mamba_dt_rank";
  if (!config.has(part) || config.value(part) == "auto")
    return (model.hidden + kHiddenOfRank - 1) / kHiddenOfRank;
  return config.integer(part, 1, bounds::kLatentRank);
}

Recurrence selective_scan(const FamilyConfig& config, const Model& model) {
  Recurrence of{RecurrenceKind::selective_scan, 1, 0, 0, 1};
  of.value_heads = model.hidden * config.integer_or("mamba_expand", 2, 1, 64);
  if (config.boolean("mixers_alone"))  // MambaConfig: a width that the file states replaces the expanded one
    of.value_heads = config.file().integer_or("intermediate_size", of.value_heads, 1, bounds::kHidden);
  of.key_head_dim = config.integer_or("mamba_d_state", 16, 1, bounds::kState);
  of.convolution = config.integer_or("mamba_d_conv", 4, 1, bounds::kConvolution);
  of.step_rank = step_rank(config, model);
  of.inner_norms = config.boolean("inner_norms");
  return of;
}

Recurrence short_convolution(const FamilyConfig& config, const Model& model) {
  Recurrence of{RecurrenceKind::short_convolution, model.hidden, model.hidden, 1, 1};
  of.convolution = config.integer_or("conv_L_cache", 3, 1, bounds::kConvolution);
  return of;
}

// For each layer, the mark that `known` has for the layer's entry in the list.
std::string listed(const FamilyConfig& config, const std::string& part, std::int64_t layers,
                   const std::map<Json, char>& known) {
  const Json& list = config.value(part);
  if (!list.is_array() || list.size() != static_cast<std::size_t>(layers))
    config.fail(part, "must have an entry for each layer",
                fmt::format("{} entries, {} layers", list.size(), layers));
  std::string marks;
  for (std::size_t layer = 0; layer < list.size(); ++layer) {
    const auto found = known.find(list[layer]);
    if (found == known.end())
      config.file().fail(fmt::format("{}/{}", config.name(part), layer),
                         "must be an entry whose kernels are known here", "found " + list[layer].dump(),
                         known.begin()->first.dump());
    marks += found->second;
  }
  return marks;
}

// For each layer, 1 where the list does not contain its number.
std::string unlisted(const FamilyConfig& config, const std::string& part, std::int64_t layers) {
  std::string marks(static_cast<std::size_t>(layers), '1');
  for (const Json& layer : config.value(part)) {
    if (!layer.is_number_unsigned() || layer >= layers)
      config.fail(part, fmt::format("must name layers from 0 to {}", layers - 1), "found " + layer.dump());
    marks[layer.get<std::size_t>()] = '0';
  }
  return marks;
}

std::string recurrent_layers(const FamilyConfig& config, std::int64_t layers) {
  static const std::map<Json, char> types = {
      {"full_attention", '0'}, {"attention", '0'}, {"linear_attention", '1'}, {"mamba", '1'}, {"conv", '1'}};
  static const std::map<Json, char> numbers = {{0, '1'}, {1, '0'}};  // MiniMax-Text-01
  if (config.has("kda_layers")) return kimi_layers(config, layers);
  if (config.has("layer_types")) return listed(config, "layer_types", layers, types);
  if (config.has("attn_type_list")) return listed(config, "attn_type_list", layers, numbers);
  if (config.has("full_attn_idxs")) return unlisted(config, "full_attn_idxs", layers);
  const std::int64_t period = config.integer("attn_layer_period", 1, bounds::kLayers);
  const std::int64_t offset = config.integer_or("attn_layer_offset", period - 1, 0, period - 1);
  std::string marks;
  for (std::int64_t layer = 0; layer < layers; ++layer) marks += layer % period == offset ? '0' : '1';
  return marks;
}

}  // namespace

void read_recurrence(const FamilyConfig& config, Model& model) {
  static const std::map<std::string, RecurrenceKind> kinds = {
      {"gated_delta_rule", RecurrenceKind::gated_delta_rule},
      {"kimi_delta", RecurrenceKind::kimi_delta},
      {"lightning", RecurrenceKind::lightning},
      {"selective_scan", RecurrenceKind::selective_scan},
      {"short_convolution", RecurrenceKind::short_convolution}};
  switch (config.choice_or("recurrence", RecurrenceKind::gated_delta_rule, kinds)) {
    case RecurrenceKind::gated_delta_rule:
      model.recurrence = delta_rule(config);
      break;
    case RecurrenceKind::kimi_delta:
      model.recurrence = kimi_delta(config);
      break;
    case RecurrenceKind::lightning:
      model.recurrence = lightning(config, model);
      break;
    case RecurrenceKind::selective_scan:
      model.recurrence = selective_scan(config, model);
      break;
    case RecurrenceKind::short_convolution:
      model.recurrence = short_convolution(config, model);
  }
  if (!config.boolean("mixers_alone")) model.recurrent = recurrent_layers(config, model.layers);
}

void read_indexer(const FamilyConfig& config, Model& model) {
  static const std::map<Json, char> types = {{"full", '1'}, {"shared", '0'}};
  Indexer indexer;
  indexer.heads = config.integer("index_n_heads", 1, bounds::kHeads);
  indexer.head_dim = config.integer("index_head_dim", 1, bounds::kHeadDim);
  indexer.block = config.integer_or("index_block", 0, 1, bounds::kChunk);
  indexer.top_k =
      config.integer("index_topk", 1, bounds::kPositions / std::max<std::int64_t>(1, indexer.block)) *
      std::max<std::int64_t>(1, indexer.block);
  // Older files give a step and an offset instead, by a rule of their class.
  if (!config.has("indexer_types") && config.file().integer_or("index_topk_freq", 1, 0, bounds::kLayers) > 1)
    config.file().fail("index_topk_freq",
                       "must stand beside indexer_types, which names the layers that score",
                       "found no indexer_types");
  if (config.has("indexer_types")) indexer.layers = listed(config, "indexer_types", model.layers, types);
  if (config.has("index_marks")) indexer.layers = listed_marks(config, "index_marks", model.layers);
  if (indexer.layers.empty() || indexer.layers.find('1') != std::string::npos) model.indexer = indexer;
}

}  // namespace rehearse
