#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

LatentAttention read_latent(const JsonReader& config) {
  LatentAttention latent;
  latent.q_rank = config.integer_or("q_lora_rank", 0, 1, bounds::kLatentRank);
  latent.kv_rank = config.integer("kv_lora_rank", 1, bounds::kLatentRank);
  latent.nope_head_dim = config.integer("qk_nope_head_dim", 1, bounds::kHeadDim);
  latent.rope_head_dim = config.integer("qk_rope_head_dim", 1, bounds::kHeadDim);
  latent.v_head_dim = config.integer("v_head_dim", 1, bounds::kHeadDim);
  return latent;
}

namespace {

Experts read_routed_experts(const JsonReader& config, std::int64_t layers) {
  Experts experts;
  experts.count = config.integer("n_routed_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("moe_intermediate_size", 1, bounds::kExpertFfnHidden);
  // At most 16 shared experts of the widest kind, so that their summed width keeps its own bound.
  experts.shared_ffn_hidden = experts.ffn_hidden * config.integer_or("n_shared_experts", 0, 0, 16);
  experts.first_layer = config.integer_or("first_k_dense_replace", 0, 0, layers);
  return experts;
}

}  // namespace

Model read_deepseek_v2(const JsonReader& config) {
  Model model = read_decoder(config);
  model.latent = read_latent(config);
  // The attention width per head; head_dim of such files names the rotary part alone.
  model.head_dim = model.latent->nope_head_dim + model.latent->rope_head_dim;
  model.kv_heads = model.heads;
  model.experts = read_routed_experts(config, model.layers);
  if (config.integer_or("moe_layer_freq", 1, 1, bounds::kLayers) != 1) {
    config.fail("moe_layer_freq", "must be 1", "found " + config.value("moe_layer_freq").dump(), "1");
  }
  if (config.boolean_or("attention_bias", false)) model.not_modelled.push_back("attention_bias");
  if (config.integer_or("topk_group", 0, 0, bounds::kExperts) <
      config.integer_or("n_group", 0, 0, bounds::kExperts)) {
    model.not_modelled.push_back("topk_group");
  }
  return model;
}

// V3 balances its experts by a bias on the router instead of a loss (DeepSeek-V3, section 2.1.2), and
// predicts further tokens with a module for each (section 2.2).
Model read_deepseek_v3(const JsonReader& config) {
  Model model = read_deepseek_v2(config);
  model.experts->router_bias = true;
  model.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, 0, bounds::kMtpLayers);
  return model;
}

}  // namespace rehearse
