// One reader for all families of known parts. The rows of the families list their parts.
#include <fmt/core.h>

#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

enum class MlpActivation { swiglu, gelu, squared_relu };

// In every family, null means as many heads as queries have. For an absent key, only the class knows the
// number.
std::int64_t kv_heads_of(const FamilyConfig& config, std::int64_t heads) {
  const std::string key = "num_key_value_heads";
  if (!config.contains(key)) config.integer(key, 1, heads);
  const std::int64_t kv_heads = config.integer_or(key, heads, 1, bounds::kHeads);
  if (heads % kv_heads != 0) {
    config.fail(key, "must divide num_attention_heads",
                fmt::format("num_attention_heads = {}, {} = {}", heads, config.name(key), kv_heads),
                nearest_divisors(heads, kv_heads));
  }
  return kv_heads;
}

std::int64_t head_dim_of(const FamilyConfig& config, std::int64_t hidden, std::int64_t heads) {
  if (!config.has("head_dim") && hidden % heads != 0) {
    const std::string width = config.name("hidden_size"), count = config.name("num_attention_heads");
    config.fail("num_attention_heads", fmt::format("must divide {} where head_dim is not given", width),
                fmt::format("{} = {}, {} = {}", width, hidden, count, heads),
                nearest_divisors(hidden, heads));
  }
  return config.integer_or("head_dim", std::max<std::int64_t>(1, hidden / heads), 1, bounds::kHeadDim);
}

// transformers, Lfm2MLP: two thirds of the width, rounded up to a multiple.
std::int64_t adjusted(const FamilyConfig& config, std::int64_t width) {
  const std::int64_t step = config.integer_or("block_multiple_of", 256, 1, bounds::kFfnHidden);
  const double times = config.number_or("block_ffn_dim_multiplier", 1, 1e-3, 1e3);
  const auto scaled = static_cast<std::int64_t>(times * static_cast<double>(2 * width / 3));
  return std::min((std::max<std::int64_t>(1, scaled) + step - 1) / step * step, bounds::kFfnHidden);
}

// Classes without a key for the MLP's width have a multiple of the hidden size.
std::int64_t ffn_hidden_of(const FamilyConfig& config, std::int64_t hidden) {
  if (config.boolean("adjusts_ffn"))
    return adjusted(config, config.integer("intermediate_size", 1, bounds::kFfnHidden));
  if (config.boolean("half_ffn"))
    return std::max<std::int64_t>(1, config.integer("intermediate_size", 1, bounds::kFfnHidden) / 2);
  if (!config.has("ffn_multiple")) return config.integer("intermediate_size", 1, bounds::kFfnHidden);
  return config.integer_or("intermediate_size", hidden * config.integer("ffn_multiple", 1, 64), 1,
                           bounds::kFfnHidden);
}

}  // namespace

void read_shape(const FamilyConfig& config, Model& model) {
  model.layers = config.has("num_hidden_layers")
                     ? config.integer("num_hidden_layers", 1, bounds::kLayers)
                     : layers_of_list(config.file(), config.name("num_hidden_layers"));
  model.hidden = config.integer("hidden_size", 1, bounds::kHidden);
  model.heads = config.integer("num_attention_heads", 1, bounds::kHeads);
  if (config.boolean("latent")) {
    model.latent = read_latent(config);
    // Width of an attention head. head_dim of such files is the rotary part alone.
    model.head_dim = model.latent->nope_head_dim + model.latent->rope_head_dim;
    model.kv_heads = model.heads;
  } else {
    model.kv_heads = kv_heads_of(config, model.heads);
    model.head_dim = head_dim_of(config, model.hidden, model.heads);
    model.v_head_dim = config.integer_or("value_head_dim", 0, 1, bounds::kHeadDim);
  }
  model.ffn_hidden = ffn_hidden_of(config, model.hidden);
  model.vocab = config.integer("vocab_size", 1, bounds::kVocab);
  model.max_positions = config.integer_or("max_position_embeddings", 0, 1, bounds::kPositions);
  model.tied_embeddings = config.boolean("tie_word_embeddings");
}

namespace {

// The encoder has model.layers layers. The decoder has its own number of layers, or the same.
void read_encoder(const FamilyConfig& config, Model& model) {
  model.encoder_layers = model.layers;
  model.layers += config.integer_or("num_decoder_layers", model.layers, 1, bounds::kLayers);
  const std::int64_t rows = config.integer_or("relative_attention_num_buckets", 0, 1, bounds::kPositions);
  model.relative_positions = rows * (config.boolean("relative_positions_of_layers") ? model.layers : 2);
}

void read_norms(const FamilyConfig& config, Model& model) {
  static const std::map<std::string, Norm> norms = {{"RMSNorm", Norm::rms},
                                                    {"LayerNorm", Norm::layer},
                                                    {"LayerNorm without bias", Norm::layer_weight},
                                                    {"LayerNorm without parameters", Norm::layer_plain}};
  static const std::map<std::string, NormPlace> places = {{"before", NormPlace::before},
                                                          {"after", NormPlace::after},
                                                          {"both", NormPlace::both},
                                                          {"shared", NormPlace::shared},
                                                          {"after sum", NormPlace::after_sum}};
  static const std::map<std::string, QkNormSpan> spans = {
      {"head", QkNormSpan::head}, {"each head", QkNormSpan::each_head}, {"all heads", QkNormSpan::all_heads}};
  model.norm = config.choice_or("normalization", Norm::rms, norms);
  model.norm_place = config.choice_or("norm_place", NormPlace::before, places);
  model.qk_norm = config.boolean("qk_layernorm");
  model.qk_norm_plain = config.boolean("qk_norm_plain");
  if (model.qk_norm) model.qk_norm_span = config.choice_or("qk_norm_span", QkNormSpan::head, spans);
  model.embedding_norm = config.boolean("embedding_norm");
  model.parallel_residual = config.boolean("parallel_residual") || model.norm_place == NormPlace::shared;
}

void read_positions(const FamilyConfig& config, Model& model) {
  static const std::map<std::string, Positions> positions = {{"rope", Positions::rotary},
                                                             {"learned_absolute", Positions::learned},
                                                             {"alibi", Positions::alibi},
                                                             {"none", Positions::none},
                                                             {"nope", Positions::none}};
  model.positions = config.choice_or("position_embedding_type", Positions::rotary, positions);
  model.token_types = config.integer_or("type_vocab_size", 0, 0, bounds::kPositions);
  model.bidirectional = config.boolean("bidirectional");
  model.position_offset = config.integer_or("position_offset", 0, 0, 16);
  model.yarn = is_yarn(config.file());
}

// Dropout rates that the row names: one rate above zero puts all of them into the graph.
bool has_dropout(const FamilyConfig& config) {
  bool some = false;
  if (!config.has("dropouts")) return false;
  for (const Json& name : config.value("dropouts"))
    some = config.number_or(name.get<std::string>(), 0, 0, 1) > 0 || some;
  return some;
}

void read_branches(const FamilyConfig& config, Model& model) {
  static const std::map<std::string, MlpActivation> activations = {
      {"swiglu", MlpActivation::swiglu},
      {"gelu", MlpActivation::gelu},
      {"squared_relu", MlpActivation::squared_relu}};
  const MlpActivation activation = config.choice_or("activation", MlpActivation::swiglu, activations);
  model.gated_mlp = activation == MlpActivation::swiglu;
  model.squared_relu = activation == MlpActivation::squared_relu;
  model.activation_weights = config.integer_or("activation_weights", 0, 0, 16);
  model.qkv_bias = config.boolean("qkv_bias");
  model.attention_out_bias = config.boolean("attention_out_bias");
  model.mlp_bias = config.boolean("mlp_bias");
  model.head_bias = config.boolean("head_bias");
  model.head_transform = config.boolean("head_transform");
  model.attention_sinks = config.boolean("attention_sinks");
  model.attention_gate = config.boolean("attention_gate");
  model.gates_heads = model.attention_gate && config.boolean("gates_heads");
  model.values_are_keys = config.boolean("values_are_keys");
  model.value_norm = config.boolean("value_norm");
  constexpr double kMaxCap = 1e6;
  model.caps_scores = config.number_or("attn_logit_softcapping", 0, 0, kMaxCap) > 0;
  model.caps_logits = config.number_or("final_logit_softcapping", 0, 0, kMaxCap) > 0;
  model.dropout = has_dropout(config);
}

// Parts of the class that no formula here has, with the effect on cost that the row states. A key that some
// formula reads is not reported as ignored.
void note_approximations(const FamilyConfig& config, Model& model) {
  const JsonReader& file = config.file();
  if (model.experts && file.integer_or("topk_group", 0, 0, bounds::kExperts) <
                           file.integer_or("n_group", 0, 0, bounds::kExperts))
    model.not_modelled.emplace_back("topk_group");
  for (const auto& [part, effect] : config.family().approximated.items()) {
    const std::string key = config.name(part);
    const bool is_read = file.asked().contains(key);
    if (!file.has(key) || file.value(key) == false || file.value(key) == 0) continue;
    if (!is_read) model.not_modelled.push_back(key);
    if (effect.is_string())
      model.warnings.push_back(
          fmt::format("{} {}: {}", key, file.value(key).dump(), effect.get<std::string>()));
  }
}

}  // namespace

Model read_family(const FamilyConfig& config) {
  Model model;
  read_shape(config, model);
  if (config.boolean("encoder")) read_encoder(config, model);
  read_norms(config, model);
  read_positions(config, model);
  read_branches(config, model);
  if (config.boolean("windows")) read_windows(config, model);
  if (config.boolean("compressed")) read_compressed(config, model);
  if (config.has("own_shape")) read_own_shape(config, model);
  if (config.boolean("listed_shapes")) read_listed_shapes(config, model);
  if (config.boolean("per_layer_parts")) {
    read_shared_keys(config, model);
    read_per_layer(config, model);
  }
  if (config.has("rotary")) read_rotary(config, model);
  if (config.boolean("experts")) model.experts = read_experts(config, model.layers);
  if (config.has("recurrence")) read_recurrence(config, model);
  if (config.boolean("indexer")) read_indexer(config, model);
  if (config.boolean("blocks") || config.boolean("mixers_alone") || config.boolean("mamba_beside_attention"))
    read_blocks(config, model);
  model.depth_block = config.integer_or("depth_block", 0, 1, bounds::kLayers);
  if (config.boolean("mtp"))
    model.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, 0, bounds::kMtpLayers);
  note_approximations(config, model);
  return model;
}

}  // namespace rehearse
