#include "model/families.h"

namespace rehearse {

// The rotary part of a head (partial_rotary_factor) has no parameters.
Model read_nemotron(const JsonReader& config) {
  Model model = read_decoder(config);
  model.norm = Norm::layer;
  model.gated_mlp = false;
  model.squared_relu = true;
  model.qkv_bias = config.boolean_or("attention_bias", false);
  model.attention_out_bias = model.qkv_bias;
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  return model;
}

}  // namespace rehearse
