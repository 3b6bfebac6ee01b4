#include <fmt/core.h>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

Model read_gpt2(const JsonReader& config) {
  Model model;
  model.layers = config.integer("n_layer", 1, bounds::kLayers);
  model.hidden = config.integer("n_embd", 1, bounds::kHidden);
  model.heads = config.integer("n_head", 1, bounds::kHeads);
  if (model.hidden % model.heads != 0) {
    config.fail("n_head", "must divide n_embd",
                fmt::format("n_embd = {}, n_head = {}", model.hidden, model.heads),
                nearest_divisors(model.hidden, model.heads));
  }
  model.kv_heads = model.heads;
  model.head_dim = model.hidden / model.heads;
  model.ffn_hidden = config.integer_or("n_inner", 4 * model.hidden, 1, bounds::kFfnHidden);
  model.vocab = config.integer("vocab_size", 1, bounds::kVocab);
  model.max_positions = config.integer("n_positions", 1, bounds::kPositions);
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", true);
  const double residual = config.number_or("resid_pdrop", 0.1, 0, 1);
  const double embedding = config.number_or("embd_pdrop", 0.1, 0, 1);
  const double attention = config.number_or("attn_pdrop", 0.1, 0, 1);
  model.dropout = residual > 0 || embedding > 0 || attention > 0;
  return model;
}

}  // namespace rehearse
