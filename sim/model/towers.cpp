// Towers of multimodal models, which feed the language model and which nothing here costs.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

constexpr std::array kTowers = {"vision_config", "audio_config",  "vit_config",     "vision_tower_config",
                                "speech_config", "talker_config", "code2wav_config"};

// The first of some names of one thing; 0: none is there.
std::int64_t first_of(const Json& tower, std::initializer_list<const char*> names, std::int64_t most) {
  for (const char* name : names)
    if (tower.contains(name) && tower[name].is_number_integer() && tower[name].get<std::int64_t>() > 0 &&
        tower[name].get<std::int64_t>() <= most)
      return tower[name].get<std::int64_t>();
  return 0;
}

std::int64_t width_of_mlp(const Json& tower, std::int64_t hidden) {
  const std::int64_t width = first_of(
      tower, {"intermediate_size", "encoder_ffn_dim", "ffn_dim", "vt_intermediate_size"}, bounds::kFfnHidden);
  if (width > 0) return width;
  const Json ratio = tower.value("mlp_ratio", Json());
  if (!ratio.is_number() || !(ratio.get<double>() > 0 && ratio.get<double>() <= 64)) return 0;
  return static_cast<std::int64_t>(ratio.get<double>() * static_cast<double>(hidden));
}

// Attention and MLP of each layer of a transformer (Dosovitskiy et al. 2021, equations 2 and 3): its norms,
// biases, patches and the projection to the text are a hundredth more. 0: the file does not tell.
double size_of(const Json& tower, std::int64_t layers, std::int64_t hidden) {
  const std::int64_t ffn = width_of_mlp(tower, hidden);
  if (layers == 0 || hidden == 0 || ffn == 0) return 0;
  const bool gated = tower.value("hidden_act", Json()) == "silu";
  const auto width = static_cast<double>(hidden);
  return static_cast<double>(layers) * width * (4 * width + (gated ? 3 : 2) * static_cast<double>(ffn));
}

// Of linear layers with biases.
std::int64_t linear(std::int64_t in, std::int64_t out) {
  return in * out + out;
}

// Of Qwen3-VL's and Qwen3.5's towers all tensors (transformers, modeling_qwen3_vl.py: patches, positions,
// blocks, and a merger for the last layer and for each of deepstack_visual_indexes). 0: of another kind.
std::int64_t exact_size_of(const Json& tower) {
  const auto number = [&](const char* key) { return first_of(tower, {key}, bounds::kFfnHidden); };
  const std::int64_t layers = number("depth"), hidden = number("hidden_size"),
                     ffn = number("intermediate_size"), patch = number("patch_size"),
                     frames = number("temporal_patch_size"), merge = number("spatial_merge_size"),
                     text = number("out_hidden_size"), positions = number("num_position_embeddings");
  if (std::min({layers, hidden, ffn, patch, frames, merge, text, positions}) == 0) return 0;
  constexpr std::int64_t kMax = 1 << 10;  // so that no product of them passes 64 bits
  if (layers > bounds::kLayers || hidden > bounds::kHidden || std::max({patch, frames, merge}) > kMax)
    return 0;
  const Json further = tower.value("deepstack_visual_indexes", Json::array());
  const std::int64_t merged = merge * merge * hidden,
                     colours = std::max<std::int64_t>(3, number("in_channels"));
  const std::int64_t block = linear(hidden, 3 * hidden) + linear(hidden, hidden) + linear(hidden, ffn) +
                             linear(ffn, hidden) + 4 * hidden;
  const std::int64_t merger = linear(merged, merged) + linear(merged, text);
  return layers * block + linear(colours * frames * patch * patch, hidden) + positions * hidden + merger +
         2 * hidden + static_cast<std::int64_t>(further.size()) * (merger + 2 * merged);
}

// What is known of its size, in words.
std::string shape_of(const Json& tower) {
  const std::int64_t layers =
      first_of(tower, {"depth", "num_hidden_layers", "encoder_layers", "n_layers", "vt_num_hidden_layers"},
               bounds::kLayers);
  // Qwen2-VL's hidden_size is that of the text.
  const std::int64_t hidden =
      first_of(tower, {"embed_dim", "hidden_size", "d_model", "width", "vt_hidden_size"}, bounds::kHidden);
  if (const std::int64_t exact = exact_size_of(tower); exact > 0)
    return fmt::format(" ({} layers of width {}, {} parameters)", layers, hidden, exact);
  const double size = size_of(tower, layers, hidden);
  if (size == 0) return "";
  return fmt::format(" ({} layers of width {}, about {:.2g} B parameters)", layers, hidden, size * 1e-9);
}

}  // namespace

std::vector<std::string> omitted_towers(const JsonReader& config) {
  std::vector<std::string> towers;
  for (const char* key : kTowers) {
    if (!config.has(key) || !config.value(key).is_object() || config.value(key).empty()) continue;
    const Json& tower = config.value(key);
    towers.push_back(
        fmt::format("{}{} is left out: its time and memory, and the tokens that it adds, are not "
                    "counted; add its tokens to --seq",
                    key, shape_of(tower)));
  }
  return towers;
}

}  // namespace rehearse
