#include <fmt/core.h>

#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

enum class Activation { swiglu, gelu, squared_relu };

// How a model encodes positions. Rotary positions may be scaled.
struct PositionType {
  Positions positions;
  bool yarn = false;
};

// Marks of 1 or 0 for each layer, as --moe-layer-freq and --window-attn-skip-freq list them; "": no list.
std::string read_marks(const JsonReader& config, const std::string& key, std::int64_t layers) {
  const std::string marks = config.text_or(key, "");
  const bool is_list =
      marks.empty() || (std::ssize(marks) == layers && marks.find_first_not_of("01") == std::string::npos);
  if (!is_list)
    config.fail(key, fmt::format("must have a 0 or 1 for each of {} layers", layers),
                fmt::format("found {} letters", marks.size()), "0111");
  return marks;
}

Experts read_experts_of_flags(const JsonReader& config, std::int64_t layers) {
  Experts experts;
  experts.count = config.integer("num_experts", 1, bounds::kExperts);
  experts.per_token = config.integer("num_experts_per_tok", 1, experts.count);
  experts.ffn_hidden = config.integer("moe_intermediate_size", 1, bounds::kExpertFfnHidden);
  experts.shared_ffn_hidden =
      config.integer_or("moe_shared_expert_intermediate_size", 0, 0, bounds::kFfnHidden);
  experts.first_layer = config.integer_or("first_k_dense_replace", 0, 0, bounds::kLayers);
  experts.every = config.integer_or("decoder_sparse_step", 1, 1, bounds::kLayers);
  experts.router_bias = config.boolean_or("router_bias", false);
  experts.linear_bias = config.boolean_or("moe_linear_bias", false);
  experts.clamped = config.number_or("swiglu_limit", 0, 0, bounds::kSwigluLimit) > 0;
  experts.layers = read_marks(config, "moe_layer_freq", layers);
  experts.latent = config.integer_or("moe_latent_size", 0, 0, bounds::kHidden);
  return experts;
}

}  // namespace

// Each part is set by the Megatron-LM flag of the same name (megatron/training/arguments.py).
Model read_megatron_gpt(const FamilyConfig& family) {
  const JsonReader& config = family.file();
  static const std::map<std::string, Norm> norms = {{"LayerNorm", Norm::layer}, {"RMSNorm", Norm::rms}};
  static const std::map<std::string, PositionType> positions = {{"rope", {Positions::rotary}},
                                                                {"yarn", {Positions::rotary, true}},
                                                                {"learned_absolute", {Positions::learned}},
                                                                {"alibi", {Positions::alibi}},
                                                                {"none", {Positions::none}}};
  static const std::map<std::string, bool> sinks = {{"vanilla", false}, {"learnable", true}};
  static const std::map<std::string, Activation> activations = {
      {"swiglu", Activation::swiglu}, {"gelu", Activation::gelu}, {"squared_relu", Activation::squared_relu}};
  Model model;
  read_shape(family, model);
  model.yarn = is_yarn(config);
  model.norm = config.choice("normalization", norms);
  const PositionType type = config.choice("position_embedding_type", positions);
  model.positions = type.positions;
  model.yarn = model.yarn || type.yarn;
  const Activation activation = config.choice("activation", activations);
  model.gated_mlp = activation == Activation::swiglu;
  model.squared_relu = activation == Activation::squared_relu;
  model.qkv_bias = config.boolean_or("qkv_bias", false);
  model.attention_out_bias = config.boolean_or("attention_out_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.qk_norm = config.boolean_or("qk_layernorm", false);
  const double hidden_dropout = config.number_or("hidden_dropout", 0, 0, 1);
  const double attention_dropout = config.number_or("attention_dropout", 0, 0, 1);
  model.dropout = hidden_dropout > 0 || attention_dropout > 0;
  model.window = config.integer_or("sliding_window", 0, 1, bounds::kPositions);
  model.full_every = config.integer_or("window_attn_skip_freq", 0, 0, bounds::kLayers);
  model.windows = read_marks(config, "window_layers", model.layers);
  model.attention_sinks = config.choice_or("softmax_type", false, sinks);
  if (config.has("kv_lora_rank")) model.latent = read_latent(family);
  if (config.has("hybrid_override_pattern"))
    read_hybrid(config, model);
  else
    model.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, 0, bounds::kMtpLayers);
  if (config.has("num_experts")) model.experts = read_experts_of_flags(config, model.layers);
  return model;
}

}  // namespace rehearse
