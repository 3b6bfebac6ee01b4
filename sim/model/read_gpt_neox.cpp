#include "model/families.h"

namespace rehearse {

Model read_gpt_neox(const JsonReader& config) {
  Model model = read_decoder(config);
  model.norm = Norm::layer;
  model.gated_mlp = false;
  model.qkv_bias = config.boolean_or("attention_bias", true);
  model.attention_out_bias = model.qkv_bias;
  model.mlp_bias = true;
  model.parallel_residual = config.boolean_or("use_parallel_residual", true);
  const double hidden = config.number_or("hidden_dropout", 0, 0, 1);
  const double attention = config.number_or("attention_dropout", 0, 0, 1);
  model.dropout = hidden > 0 || attention > 0;
  return model;
}

}  // namespace rehearse
