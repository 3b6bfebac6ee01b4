// Layers of one model whose sizes differ: layers with a window, or sizes listed layer by layer.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// The sizes that the row calls own_NAME, else the model's.
LayerShape own_shape_of(const FamilyConfig& config, const Model& model) {
  LayerShape own = model.own_shape();
  own.heads = config.integer_or("own_num_attention_heads", own.heads, 1, bounds::kHeads);
  own.kv_heads = config.integer_or("own_num_key_value_heads", own.kv_heads, 1, bounds::kHeads);
  own.head_dim = config.integer_or("own_head_dim", own.head_dim, 1, bounds::kHeadDim);
  own.v_head_dim = config.integer_or("own_v_head_dim", own.v_head_dim, 1, bounds::kHeadDim);
  own.attention_sinks = config.boolean("own_attention_sinks", own.attention_sinks);
  own.values_are_keys = config.boolean("own_values_are_keys", own.values_are_keys);
  return own;
}

// One entry per layer: integers, or for widths multiples of the hidden size.
const Json& list_of(const FamilyConfig& config, const std::string& part, std::int64_t layers) {
  const Json& list = config.value(part);
  if (!list.is_array() || list.size() != static_cast<std::size_t>(layers))
    config.fail(part, "must have an entry for each layer",
                fmt::format("{}, {} layers",
                            list.is_array() ? fmt::format("{} entries", list.size()) : list.dump(), layers));
  return list;
}

std::int64_t entry(const FamilyConfig& config, const std::string& part, std::size_t layer,
                   std::int64_t most) {
  const Json& value = config.value(part)[layer];
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1 || value.get<std::int64_t>() > most)
    config.file().fail(fmt::format("{}/{}", config.name(part), layer),
                       fmt::format("must be a whole number from 1 to {}", most), "found " + value.dump());
  return value.get<std::int64_t>();
}

// apple/OpenELM, make_divisible: rounds to the nearest multiple, but not below nine tenths.
std::int64_t width_of(const FamilyConfig& config, const std::string& part, std::size_t layer,
                      std::int64_t hidden) {
  const Json& multiple = config.value(part)[layer];
  constexpr double kMax = 64;
  if (!multiple.is_number() || !(multiple.get<double>() > 0 && multiple.get<double>() <= kMax))
    config.file().fail(fmt::format("{}/{}", config.name(part), layer),
                       fmt::format("must be a number above 0 and up to {}", kMax),
                       "found " + multiple.dump());
  const double wanted = multiple.get<double>() * static_cast<double>(hidden);
  const std::int64_t step = config.integer_or("ffn_dim_divisor", 1, 1, bounds::kHidden);
  const auto steps = static_cast<std::int64_t>(wanted + static_cast<double>(step) / 2) / step;
  const std::int64_t rounded = std::max<std::int64_t>(1, steps) * step;
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + step : rounded;
}

}  // namespace

void set_shapes(Model& model, const std::vector<LayerShape>& of_layers) {
  const LayerShape first = of_layers.front();
  model.shapes = {first};
  model = model.shaped(1);
  for (const LayerShape& shape : of_layers) {
    const auto found = std::ranges::find(model.shapes, shape);
    const auto number = static_cast<std::int32_t>(found - model.shapes.begin()) + 1;
    model.shape_of_layer.push_back(shape == first ? 0 : number);
    if (shape != first && found == model.shapes.end()) model.shapes.push_back(shape);
  }
  if (model.shapes.empty()) model.shape_of_layer.clear();
}

void read_own_shape(const FamilyConfig& config, Model& model) {
  enum class Which { windowed, full };
  static const std::map<std::string, Which> names = {{"windowed", Which::windowed}, {"full", Which::full}};
  const bool windowed = config.choice_or("own_shape", Which::full, names) == Which::windowed;
  const LayerShape own = own_shape_of(config, model);
  std::vector<LayerShape> shapes;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    shapes.push_back((model.window_of(layer) > 0) == windowed ? own : model.own_shape());
  set_shapes(model, shapes);
}

// The last layers reuse keys and values of the last earlier layer of their kind. Their MLPs may be twice as
// wide.
void read_shared_keys(const FamilyConfig& config, Model& model) {
  const std::int64_t sharing = config.integer_or("num_kv_shared_layers", 0, 0, model.layers);
  if (sharing == 0) return;
  std::vector<LayerShape> shapes;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const std::int32_t of = model.shape_of(layer);
    LayerShape shape = of == 0 ? model.own_shape() : model.shapes[static_cast<std::size_t>(of - 1)];
    shape.shares_keys = layer >= model.layers - sharing;
    if (shape.shares_keys && config.boolean("use_double_wide_mlp"))
      shape.ffn_hidden = std::min(2 * shape.ffn_hidden, bounds::kFfnHidden);
    shapes.push_back(shape);
  }
  set_shapes(model, shapes);
}

void read_per_layer(const FamilyConfig& config, Model& model) {
  model.per_layer_width = config.integer_or("hidden_size_per_layer_input", 0, 0, bounds::kHidden);
  if (model.per_layer_width > 0)
    model.per_layer_vocab = config.integer_or("vocab_size_per_layer_input", model.vocab, 1, bounds::kVocab);
  model.alternating = config.integer_or("altup_num_inputs", 1, 1, bounds::kStreams);
  model.laurel_rank = config.integer_or("laurel_rank", 0, 0, bounds::kLatentRank);
}

void read_listed_shapes(const FamilyConfig& config, Model& model) {
  std::vector<LayerShape> shapes(static_cast<std::size_t>(model.layers), model.own_shape());
  for (const char* part : {"heads_of_layers", "kv_heads_of_layers", "ffn_multiples_of_layers"})
    if (config.has(part)) list_of(config, part, model.layers);
  for (std::size_t layer = 0; layer < shapes.size(); ++layer) {
    LayerShape& shape = shapes[layer];
    if (config.has("heads_of_layers")) shape.heads = entry(config, "heads_of_layers", layer, bounds::kHeads);
    if (config.has("kv_heads_of_layers"))
      shape.kv_heads = entry(config, "kv_heads_of_layers", layer, bounds::kHeads);
    if (config.has("ffn_multiples_of_layers"))
      shape.ffn_hidden =
          std::min(width_of(config, "ffn_multiples_of_layers", layer, model.hidden), bounds::kFfnHidden);
  }
  set_shapes(model, shapes);
}

}  // namespace rehearse
