#include "model/model.h"

namespace rehearse {

namespace {

std::int64_t norm_size(const Model& model) {
  return model.norm == Norm::layer ? 2 * model.hidden : model.hidden;
}

std::int64_t dense_attention(const Model& model) {
  const std::int64_t q = model.heads * model.head_dim;
  const std::int64_t kv = 2 * model.kv_heads * model.head_dim;
  return model.hidden * (q + kv) + q * model.hidden + (model.qkv_bias ? q + kv : 0) +
         (model.attention_out_bias ? model.hidden : 0) + (model.attention_sinks ? model.heads : 0);
}

// DeepSeek-V2 (2024), equations 9 to 18; biases do not occur.
std::int64_t latent_attention(const Model& model, const LatentAttention& latent) {
  const std::int64_t q = model.heads * (latent.nope_head_dim + latent.rope_head_dim);
  const std::int64_t kv = model.heads * (latent.nope_head_dim + latent.v_head_dim);
  const std::int64_t queries = latent.q_rank == 0 ? model.hidden * q : (model.hidden + q) * latent.q_rank;
  const std::int64_t compressed = model.hidden * (latent.kv_rank + latent.rope_head_dim);
  return queries + compressed + latent.kv_rank * kv + model.heads * latent.v_head_dim * model.hidden;
}

std::int64_t feed_forward(const Model& model, std::int64_t width) {
  return (model.gated_mlp ? 3 : 2) * model.hidden * width;
}

std::int64_t dense_mlp(const Model& model) {
  const std::int64_t up_biases = (model.gated_mlp ? 2 : 1) * model.ffn_hidden;
  return feed_forward(model, model.ffn_hidden) + (model.mlp_bias ? up_biases + model.hidden : 0);
}

std::int64_t one_expert(const Model& model, const Experts& experts) {
  const std::int64_t biases = (model.gated_mlp ? 2 : 1) * experts.ffn_hidden + model.hidden;
  return feed_forward(model, experts.ffn_hidden) + (experts.linear_bias ? biases : 0);
}

std::int64_t sparse_mlp(const Model& model, const Experts& experts) {
  const std::int64_t router = model.hidden * experts.count + (experts.router_bias ? experts.count : 0) +
                              (experts.linear_bias ? experts.count : 0);
  return router + experts.count * one_expert(model, experts) + feed_forward(model, experts.shared_ffn_hidden);
}

std::int64_t layer_norms(const Model& model) {
  std::int64_t norms = 2 * norm_size(model);
  if (model.qk_norm) norms += 2 * model.head_dim;
  if (model.latent) norms += model.latent->q_rank + model.latent->kv_rank;
  return norms;
}

std::int64_t count_sparse_layers(const Model& model) {
  std::int64_t sparse = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) sparse += model.is_sparse(layer) ? 1 : 0;
  return sparse;
}

}  // namespace

bool Model::is_sparse(std::int64_t layer) const {
  return experts && layer >= experts->first_layer && (layer + 1) % experts->every == 0;
}

std::int64_t Model::window_of(std::int64_t layer) const {
  return full_every > 0 && (layer + 1) % full_every == 0 ? 0 : window;
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.embedding = model.vocab * model.hidden;
  count.positions = model.positions == Positions::learned ? model.max_positions * model.hidden : 0;
  count.attention = model.latent ? latent_attention(model, *model.latent) : dense_attention(model);
  count.mlp = dense_mlp(model);
  count.experts = model.experts ? sparse_mlp(model, *model.experts) : 0;
  count.norms = layer_norms(model);
  count.final_norm = norm_size(model);
  count.head = model.tied_embeddings ? 0 : model.vocab * model.hidden;
  count.sparse_layers = count_sparse_layers(model);
  count.dense_layers = model.layers - count.sparse_layers;
  // DeepSeek-V3, equation 21: two norms and a projection before a layer like the last, and a norm after it.
  if (model.mtp_layers > 0) {
    const std::int64_t mlp = model.is_sparse(model.layers - 1) ? count.experts : count.mlp;
    count.mtp = count.attention + mlp + count.norms + 3 * norm_size(model) + 2 * model.hidden * model.hidden;
  }
  count.total = count.embedding + count.positions + count.final_norm + count.head +
                model.layers * (count.attention + count.norms) + count.dense_layers * count.mlp +
                count.sparse_layers * count.experts + model.mtp_layers * count.mtp;
  count.active = count.total;
  if (model.experts) {
    const std::int64_t unvisited = model.experts->count - model.experts->per_token;
    const std::int64_t sparse_modules = model.is_sparse(model.layers - 1) ? model.mtp_layers : 0;
    count.active -= (count.sparse_layers + sparse_modules) * unvisited * one_expert(model, *model.experts);
  }
  return count;
}

}  // namespace rehearse
