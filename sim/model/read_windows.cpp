#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// 1 for each layer with the window, or with attention inside chunks.
std::string of_types(const FamilyConfig& config, std::int64_t layers) {
  const std::string windowed = config.boolean("window_in_chunks") ? "chunked_attention" : "sliding_attention";
  const Json& types = config.value("layer_types");
  // Step 3.5 also lists its MTP layers.
  const std::int64_t further = config.file().integer_or("num_nextn_predict_layers", 0, 0, bounds::kMtpLayers);
  const auto count = static_cast<std::size_t>(layers);
  if (!types.is_array() ||
      (types.size() != count && types.size() != count + static_cast<std::size_t>(further))) {
    config.fail("layer_types", "must name the attention of each layer",
                fmt::format("{} names, num_hidden_layers = {}", types.size(), layers));
  }
  std::string marks;
  for (std::size_t layer = 0; layer < count; ++layer) {
    const Json& type = types[layer];
    if (type != windowed && type != "full_attention")
      config.file().fail(fmt::format("layer_types/{}", layer),
                         fmt::format("must be {} or full_attention: no other has kernels here", windowed),
                         "found " + type.dump(), "full_attention");
    marks += type == windowed ? '1' : '0';
  }
  return marks;
}

// "LLLG": L has the window. The last layer sees all keys (transformers, Exaone4Config).
std::string of_letters(const FamilyConfig& config, const std::string& letters, std::int64_t layers) {
  if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos)
    config.fail("sliding_window_pattern", "must have L and G only", fmt::format("found \"{}\"", letters),
                "LLLG");
  std::string marks;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    marks +=
        letters[static_cast<std::size_t>(layer) % letters.size()] == 'L' && layer + 1 < layers ? '1' : '0';
  return marks;
}

// The list of Llama 4 and SmolLM 3 has 1 for layers with rotary positions. In Llama 4, those layers attend
// inside chunks.
std::string of_rotary(const FamilyConfig& config, std::int64_t layers) {
  const Json& list = config.value("no_rope_layers");
  std::string marks;
  for (const Json& has_rotary : list) marks += has_rotary == 1 ? '1' : '0';
  if (marks.size() != static_cast<std::size_t>(layers))
    config.fail("no_rope_layers", "must have 1 or 0 for each layer",
                fmt::format("{} entries, {} layers", list.size(), layers));
  return marks;
}

bool lists_rotary(const FamilyConfig& config) {
  return config.has("no_rope_layers") && !config.value("no_rope_layers").empty();
}

}  // namespace

std::string listed_marks(const FamilyConfig& config, const std::string& part, std::int64_t layers) {
  const Json& list = config.value(part);
  if (!list.is_array() || list.size() != static_cast<std::size_t>(layers))
    config.fail(part, "must have 1 or 0 for each layer",
                fmt::format("{} entries, {} layers", list.size(), layers));
  std::string marks;
  for (std::size_t layer = 0; layer < list.size(); ++layer) {
    const bool is_one = list[layer] == 1 || list[layer] == true;
    if (!is_one && list[layer] != 0 && list[layer] != false)
      config.file().fail(fmt::format("{}/{}", config.name(part), layer), "must be 1 or 0",
                         "found " + list[layer].dump(), "1");
    marks += is_one ? '1' : '0';
  }
  return marks;
}

// Stores a step (layer l sees all keys when (l + 1) % step == 0) where one fits the marks, else the marks.
void set_windows(Model& model, const std::string& marks) {
  const std::size_t first = marks.find('0');
  model.full_every = first == std::string::npos ? 0 : static_cast<std::int64_t>(first) + 1;
  for (std::size_t layer = 0; layer < marks.size(); ++layer) {
    const bool windowed =
        model.full_every == 0 || (layer + 1) % static_cast<std::size_t>(model.full_every) != 0;
    if (windowed == (marks[layer] == '1')) continue;
    model.full_every = 0;
    model.windows = marks;
    return;
  }
}

void read_windows(const FamilyConfig& config, Model& model) {
  const std::int64_t window = config.integer_or("sliding_window", 0, 1, bounds::kPositions);
  // Qwen's files name a window even where it is switched off. Layers from max_window_layers on use it.
  const std::int64_t full = config.integer_or("max_window_layers", 0, 0, bounds::kLayers);
  std::string marks(static_cast<std::size_t>(model.layers), '1');
  if (config.has("window_marks")) {
    marks = listed_marks(config, "window_marks", model.layers);
  } else if (config.has("layer_types")) {
    marks = of_types(config, model.layers);
  } else if (config.boolean("window_in_chunks") && lists_rotary(config)) {
    marks = of_rotary(config, model.layers);
  } else if (config.has("sliding_window_pattern")) {
    const Json& pattern = config.value("sliding_window_pattern");
    if (pattern.is_string()) {
      marks = of_letters(config, pattern.get<std::string>(), model.layers);
    } else {
      const std::int64_t every = config.integer("sliding_window_pattern", 0, bounds::kLayers);
      for (std::int64_t layer = every - 1; every > 0 && layer < model.layers; layer += every)
        marks[static_cast<std::size_t>(layer)] = '0';
    }
  } else {
    for (std::int64_t layer = 0; layer < std::min(full, model.layers); ++layer)
      marks[static_cast<std::size_t>(layer)] = '0';
  }
  if (window == 0 || !config.boolean("use_sliding_window", true) || marks.find('1') == std::string::npos)
    return;
  model.window = window;
  model.window_in_chunks = config.boolean("window_in_chunks");
  set_windows(model, marks);
}

void read_rotary(const FamilyConfig& config, Model& model) {
  enum class Rule { windowed, interval };
  static const std::map<std::string, Rule> rules = {{"windowed", Rule::windowed},
                                                    {"interval", Rule::interval}};
  std::string marks(static_cast<std::size_t>(model.layers), '1');
  if (config.choice_or("rotary", Rule::windowed, rules) == Rule::windowed) {
    for (std::int64_t layer = 0; model.window > 0 && layer < model.layers; ++layer)
      if (model.window_of(layer) == 0) marks[static_cast<std::size_t>(layer)] = '0';
  } else if (lists_rotary(config)) {
    marks = of_rotary(config, model.layers);
  } else {
    const std::int64_t every = config.integer_or("no_rope_layer_interval", 0, 0, bounds::kLayers);
    for (std::int64_t layer = every - 1; every > 0 && layer < model.layers; layer += every)
      marks[static_cast<std::size_t>(layer)] = '0';
  }
  if (marks.find('0') != std::string::npos) model.rotary = marks;
}

}  // namespace rehearse
