#include <fmt/core.h>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

std::int64_t read_kv_heads(const JsonReader& config, std::int64_t heads, AbsentKvHeads absent) {
  const std::string key = "num_key_value_heads";
  // Present but null means all heads in every family; absent means a number that only the class knows.
  if (absent == AbsentKvHeads::error && !config.json().contains(key)) config.integer(key, 1, heads);
  const std::int64_t kv_heads = config.integer_or(key, heads, 1, bounds::kHeads);
  if (heads % kv_heads != 0) {
    config.fail(key, "must divide num_attention_heads",
                fmt::format("num_attention_heads = {}, {} = {}", heads, key, kv_heads),
                nearest_divisors(heads, kv_heads));
  }
  return kv_heads;
}

std::int64_t read_head_dim(const JsonReader& config, std::int64_t hidden, std::int64_t heads) {
  if (!config.has("head_dim") && hidden % heads != 0) {
    config.fail("num_attention_heads", "must divide hidden_size where head_dim is not given",
                fmt::format("hidden_size = {}, num_attention_heads = {}", hidden, heads),
                nearest_divisors(hidden, heads));
  }
  return config.integer_or("head_dim", std::max<std::int64_t>(1, hidden / heads), 1, bounds::kHeadDim);
}

// A config without attention_factor has 0.1 ln(factor) + 1 (Peng et al. 2023, equation 22).
bool is_yarn_of(const JsonReader& scaling) {
  const std::string type = scaling.text_or("rope_type", scaling.text_or("type", ""));
  return type == "yarn" && scaling.number_or("factor", 1, 0, 1e6) > 1 &&
         scaling.number_or("attention_factor", 2, 0, 1e6) != 1;
}

// transformers 5 says rope_parameters, of all layers or by the type of a layer (modeling_rope_utils.py).
bool is_yarn(const JsonReader& config) {
  if (config.has("rope_scaling")) return is_yarn_of(config.object("rope_scaling"));
  if (!config.has("rope_parameters")) return false;
  const JsonReader parameters = config.object("rope_parameters");
  for (const auto& [type, value] : parameters.json().items())
    if (value.is_object() && is_yarn_of(parameters.object(type))) return true;
  return is_yarn_of(parameters);
}

}  // namespace

Model read_decoder(const JsonReader& config, AbsentKvHeads absent) {
  Model model;
  model.layers = config.integer("num_hidden_layers", 1, bounds::kLayers);
  model.hidden = config.integer("hidden_size", 1, bounds::kHidden);
  model.heads = config.integer("num_attention_heads", 1, bounds::kHeads);
  model.kv_heads = read_kv_heads(config, model.heads, absent);
  model.head_dim = read_head_dim(config, model.hidden, model.heads);
  model.ffn_hidden = config.integer("intermediate_size", 1, bounds::kFfnHidden);
  model.vocab = config.integer("vocab_size", 1, bounds::kVocab);
  model.max_positions = config.integer_or("max_position_embeddings", 0, 1, bounds::kPositions);
  model.yarn = is_yarn(config);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", false);
  return model;
}

}  // namespace rehearse
