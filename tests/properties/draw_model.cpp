#include "draw_model.h"

#include <algorithm>

namespace rehearse::properties {

namespace {

using rc::gen::element;
using rc::gen::inRange;

constexpr int kPositions = 2048;

void add_size(Json& config, const Degrees& degrees, int layers, const char* type) {
  const int kv_heads = degrees.tp * degrees.cp * *element(1, 1, 2);
  const int heads = kv_heads * *element(1, 2, 4);
  const int head_dim = *element(64, 128);
  config = {{"model_type", type},
            {"num_hidden_layers", layers},
            {"hidden_size", heads * head_dim},
            {"num_attention_heads", heads},
            {"num_key_value_heads", kv_heads},
            {"head_dim", head_dim},
            {"intermediate_size", degrees.tp * degrees.etp * 64 * *inRange(1, 9)},
            {"vocab_size", *inRange(500, 4000)},
            {"max_position_embeddings", kPositions},
            {"tie_word_embeddings", *rc::gen::arbitrary<bool>()}};
}

Json gpt2(const Degrees& degrees, int layers) {
  const int heads = degrees.tp * degrees.cp * *element(1, 2);
  const double dropout = *element(0.0, 0.1);
  return {{"model_type", "gpt2"},   {"n_layer", layers},         {"n_embd", heads * 64},
          {"n_head", heads},        {"n_positions", kPositions}, {"vocab_size", *inRange(500, 4000)},
          {"resid_pdrop", dropout}, {"embd_pdrop", dropout},     {"attn_pdrop", dropout}};
}

void add_experts(Json& config, const Degrees& degrees, const std::string& type, int layers) {
  const int count = degrees.ep * *element(1, 2, 4);
  config["num_experts_per_tok"] = *inRange(1, std::min(count, 4) + 1);
  const bool is_local = type == "mixtral" || type == "gpt_oss";
  config[is_local ? "num_local_experts" : type == "qwen3_moe" ? "num_experts" : "n_routed_experts"] = count;
  if (is_local) return;
  config["moe_intermediate_size"] = degrees.tp * degrees.etp * 32 * *inRange(1, 5);
  if (type == "qwen3_moe") {
    config["decoder_sparse_step"] = *element(1, 1, 2);
    return;
  }
  config["n_shared_experts"] = *inRange(0, 3);
  if (type != "nemotron_h") config["first_k_dense_replace"] = *inRange(0, std::max(1, layers / 2) + 1);
}

void add_windows(Json& config, int layers) {
  const int step = *inRange(2, 5);
  config["sliding_window"] = 128;
  for (int layer = 1; layer <= layers; ++layer)
    config["layer_types"].push_back(layer % step == 0 ? "full_attention" : "sliding_attention");
}

void add_what_gpt_oss_has(Json& config, int layers, bool windows) {
  if (windows) add_windows(config, layers);
  config["swiglu_limit"] = *element(0, 7);
  if (*rc::gen::arbitrary<bool>()) config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 32.0}};
}

void add_latent_attention(Json& config) {
  if (*rc::gen::arbitrary<bool>()) config["q_lora_rank"] = 64;
  config["kv_lora_rank"] = 64;
  config["qk_nope_head_dim"] = 64;
  config["qk_rope_head_dim"] = 32;
  config["v_head_dim"] = 64;
  config["num_key_value_heads"] = config["num_attention_heads"];
}

// Every type of layer that the run has, in any order; chunks that divide every sequence drawn.
void add_what_hybrids_have(Json& config, const Degrees& degrees, bool has_experts, int layers) {
  std::string pattern = has_experts ? "M*E" : "M*-";
  while (static_cast<int>(pattern.size()) < layers)
    pattern += *rc::gen::elementOf(std::string(has_experts ? "M*-E" : "M*-"));
  std::rotate(pattern.begin(), pattern.begin() + *inRange(0, layers), pattern.end());
  const int groups = degrees.tp * degrees.cp * *element(1, 2);
  config.update({{"hybrid_override_pattern", pattern},
                 {"mamba_num_heads", groups * *element(1, 2)},
                 {"mamba_head_dim", *element(32, 64)},
                 {"n_groups", groups},
                 {"ssm_state_size", *element(16, 64)},
                 {"chunk_size", 8}});
  if (!has_experts) return;
  if (*rc::gen::arbitrary<bool>()) config["moe_latent_size"] = 32;
  config["moe_shared_expert_intermediate_size"] = degrees.tp * 32;
  if (!*rc::gen::arbitrary<bool>()) return;
  config["num_nextn_predict_layers"] = *inRange(1, 3);
  config["mtp_hybrid_override_pattern"] = *element<std::string>("*E", "M");
}

}  // namespace

Json draw_tower(const Degrees& degrees, const Json& config) {
  const int heads = degrees.tp * *element(1, 2), layers = *inRange(1, 4);
  Json tower = {{"depth", layers},
                {"hidden_size", heads * 32},
                {"num_heads", heads},
                {"intermediate_size", degrees.tp * 32 * *inRange(1, 5)},
                {"hidden_act", *element<std::string>("silu", "gelu")},
                {"patch_size", *element(8, 14)},
                {"spatial_merge_size", *element(1, 2)}};
  const Json text = config.contains("hidden_size") ? config["hidden_size"] : config["n_embd"];
  switch (*inRange(0, 4)) {
    case 0:
      tower.update({{"num_position_embeddings", 64}, {"out_hidden_size", text}});
      if (*rc::gen::arbitrary<bool>()) tower["deepstack_visual_indexes"] = {0};
      break;
    case 1:
      tower.update(
          {{"window_size", 4 * tower["patch_size"].get<int>()}, {"fullatt_block_indexes", {layers - 1}}});
      break;
    case 2:
      tower["model_type"] = *element<std::string>("pixtral", "clip_vision_model", "siglip_vision_model");
      tower["image_size"] = 112;
      break;
    default:
      break;
  }
  return tower;
}

Json draw_config(const Degrees& degrees, bool has_experts, int layers, bool windows) {
  Json config;
  if (layers >= 3 && *inRange(0, 5) == 0) {
    add_size(config, degrees, layers, "nemotron_h");
    if (has_experts) add_experts(config, degrees, "nemotron_h", layers);
    add_what_hybrids_have(config, degrees, has_experts, layers);
    return config;
  }
  if (has_experts) {
    const std::string type =
        *element<std::string>("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "gpt_oss");
    add_size(config, degrees, layers, type.c_str());
    if (type.starts_with("deepseek")) add_latent_attention(config);
    add_experts(config, degrees, type, layers);
    if (type == "deepseek_v3") config["num_nextn_predict_layers"] = *element(0, 1, 2);
    if (type == "gpt_oss") add_what_gpt_oss_has(config, layers, windows);
    return config;
  }
  const std::string type = *element<std::string>("llama", "gpt2", "mistral", "qwen3", "gpt_neox", "nemotron");
  if (type == "gpt2") return gpt2(degrees, layers);
  add_size(config, degrees, layers, type.c_str());
  if (type == "mistral") config["sliding_window"] = windows ? Json(128) : Json();
  if (type == "gpt_neox") {
    config.erase("num_key_value_heads");
    config.erase("head_dim");
  }
  return config;
}

}  // namespace rehearse::properties
