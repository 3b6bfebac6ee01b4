// NVIDIA's Llama-Nemotron models whose layers were searched (Bercovich et al. 2024, arXiv 2411.19146,
// Puzzle). Each block of block_configs has attention with its own number of key and value heads, or no
// attention. It has an MLP of its own width, or no MLP (their modeling_decilm.py).
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// Refuses parts that are neither attention nor an MLP of another width. No checkpoint of these models has
// them.
void refuse(const JsonReader& part, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (part.has(key) && part.value(key) != false)
      part.fail(key, "must be null or false: nothing here costs it", "found " + part.value(key).dump(),
                "null");
}

bool is_absent(const JsonReader& part) {
  return part.boolean_or("no_op", false);
}

std::int64_t kv_heads_of(const JsonReader& attention, std::int64_t heads) {
  if (attention.has("num_key_value_heads")) return attention.integer("num_key_value_heads", 1, heads);
  const std::int64_t group = attention.integer("n_heads_in_group", 1, heads);
  if (heads % group != 0)
    attention.fail("n_heads_in_group", "must divide num_attention_heads",
                   fmt::format("num_attention_heads = {}, n_heads_in_group = {}", heads, group));
  return heads / group;
}

// Two thirds of the multiple, rounded up to a multiple of 256 (_ffn_mult_to_intermediate_size).
std::int64_t width_of(const JsonReader& ffn, std::int64_t hidden) {
  if (ffn.has("intermediate_size")) return ffn.integer("intermediate_size", 1, bounds::kFfnHidden);
  constexpr std::int64_t kStep = 256;
  constexpr double kMax = 64;
  const double multiple = ffn.number("ffn_mult", 1e-3, kMax);
  const auto width = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden) / 3);
  return std::min((width + kStep - 1) / kStep * kStep, bounds::kFfnHidden);
}

}  // namespace

Model read_nas(const FamilyConfig& config) {
  Model model;
  read_shape(config, model);
  model.qkv_bias = model.attention_out_bias = config.boolean("attention_bias");
  model.mlp_bias = config.boolean("mlp_bias");
  model.yarn = is_yarn(config.file());
  const std::vector<JsonReader> blocks = config.file().objects("block_configs");
  if (blocks.size() != static_cast<std::size_t>(model.layers))
    config.file().fail("block_configs", "must have an entry for each layer",
                       fmt::format("{} entries, {} layers", blocks.size(), model.layers));
  // Attention layers get the width of the first MLP, and MLPs the heads of the first attention. Shapes then
  // differ only in sizes that a layer uses.
  LayerShape base = model.own_shape();
  std::vector<LayerShape> shapes;
  bool is_first_attention = true, is_first_mlp = true;
  for (const JsonReader& block : blocks) {
    const JsonReader attention = block.object("attention"), ffn = block.object("ffn");
    refuse(attention, {"replace_with_linear", "sparsify", "window_length", "num_sink_tokens", "mamba"});
    refuse(ffn, {"replace_with_linear", "sparsify", "moe"});
    if (!is_absent(attention)) {
      model.pattern += '*';
      shapes.push_back(base);
      shapes.back().kv_heads = kv_heads_of(attention, model.heads);
      if (std::exchange(is_first_attention, false)) base.kv_heads = shapes.back().kv_heads;
    }
    if (!is_absent(ffn)) {
      model.pattern += '-';
      shapes.push_back(base);
      shapes.back().ffn_hidden = width_of(ffn, model.hidden);
      if (std::exchange(is_first_mlp, false)) base.ffn_hidden = shapes.back().ffn_hidden;
    }
  }
  for (std::size_t i = 0; i < shapes.size(); ++i)
    (model.pattern[i] == '*' ? shapes[i].ffn_hidden = base.ffn_hidden : shapes[i].kv_heads = base.kv_heads);
  if (shapes.empty())
    config.file().fail("block_configs", "must have a block with attention or an MLP", "found none");
  model.layers = static_cast<std::int64_t>(model.pattern.size());
  set_shapes(model, shapes);
  return model;
}

}  // namespace rehearse
