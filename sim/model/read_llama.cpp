#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

Model read_llama(const JsonReader& config) {
  Model model = read_decoder(config);
  model.qkv_bias = config.boolean_or("attention_bias", false);
  model.attention_out_bias = model.qkv_bias;
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  return model;
}

Model read_mistral(const JsonReader& config) {
  Model model = read_decoder(config, AbsentKvHeads::error);
  model.window = config.integer_or("sliding_window", 0, 1, bounds::kPositions);
  return model;
}

namespace {

// Qwen's files name a window even where it is switched off. Layers from max_window_layers on use it.
void read_qwen_window(const JsonReader& config, Model& model) {
  const std::int64_t window = config.integer_or("sliding_window", 0, 1, bounds::kPositions);
  const std::int64_t full = config.integer_or("max_window_layers", 0, 0, bounds::kLayers);
  if (!config.boolean_or("use_sliding_window", false) || full >= model.layers) return;
  if (full == 0) {
    model.window = window;
  } else {
    model.not_modelled.push_back("max_window_layers");
  }
}

}  // namespace

Model read_qwen2(const JsonReader& config) {
  Model model = read_decoder(config, AbsentKvHeads::error);
  model.qkv_bias = true;
  read_qwen_window(config, model);
  return model;
}

Model read_qwen3(const JsonReader& config) {
  Model model = read_decoder(config, AbsentKvHeads::error);
  model.qk_norm = true;
  model.qkv_bias = config.boolean_or("attention_bias", false);
  model.attention_out_bias = model.qkv_bias;
  read_qwen_window(config, model);
  return model;
}

}  // namespace rehearse
