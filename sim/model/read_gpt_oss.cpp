#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

// OpenAI 2025, gpt-oss-120b & gpt-oss-20b model card, section 2: every product has a bias, the router's and
// the experts' too, a score a head is learned that no key has, and windows alternate with whole attention.
Model read_gpt_oss(const JsonReader& config) {
  Model model = read_decoder(config, AbsentKvHeads::error);
  model.qkv_bias = config.boolean_or("attention_bias", true);
  model.attention_out_bias = model.qkv_bias;
  model.attention_sinks = true;
  read_layer_windows(config, model);
  Experts experts;
  experts.count = config.integer("num_local_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("intermediate_size", 1, bounds::kExpertFfnHidden);
  experts.linear_bias = true;
  experts.clamped = config.number_or("swiglu_limit", 7, 0, bounds::kSwigluLimit) > 0;
  model.experts = experts;
  return model;
}

}  // namespace rehearse
