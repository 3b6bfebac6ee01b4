#include <algorithm>

#include "model/count_mixers.h"
#include "model/model.h"

namespace rehearse {

namespace {

std::int64_t norm_size(const Model& model) {
  if (model.norm == Norm::layer_plain) return 0;
  return model.norm == Norm::layer ? 2 * model.hidden : model.hidden;
}

std::int64_t qk_norms(const Model& model) {
  if (!model.qk_norm || model.qk_norm_plain) return 0;
  if (model.shares_keys) return model.head_dim;  // a norm of queries alone
  return (model.qk_norm_span == QkNormSpan::head ? 2 : model.heads + model.kv_heads) * model.head_dim;
}

std::int64_t dense_attention(const Model& model) {
  const std::int64_t q = model.heads * model.head_dim, v = model.kv_heads * model.value_width();
  const std::int64_t keys = model.kv_heads * model.head_dim;
  const std::int64_t kv = model.shares_keys ? 0 : keys + (model.values_are_keys ? 0 : v);
  const std::int64_t gate = !model.attention_gate ? 0 : model.gates_heads ? model.heads : q;
  return model.hidden * (q + gate + kv) + model.heads * model.value_width() * model.hidden +
         (model.qkv_bias ? q + gate + kv : 0) + (model.attention_out_bias ? model.hidden : 0) +
         (model.attention_sinks ? model.heads : 0);
}

// DeepSeek-V2 (2024), equations 9 to 18; biases do not occur.
std::int64_t latent_attention(const Model& model, const LatentAttention& latent) {
  const std::int64_t q = model.heads * (latent.nope_head_dim + latent.rope_head_dim);
  const std::int64_t kv = model.heads * (latent.nope_head_dim + latent.v_head_dim);
  const std::int64_t queries = latent.q_rank == 0 ? model.hidden * q : (model.hidden + q) * latent.q_rank;
  const std::int64_t compressed = model.hidden * (latent.kv_rank + latent.rope_head_dim);
  const std::int64_t gate = model.attention_gate ? model.hidden * model.heads * latent.v_head_dim : 0;
  return queries + gate + compressed + latent.kv_rank * kv + model.heads * latent.v_head_dim * model.hidden;
}

std::int64_t feed_forward(const Model& model, std::int64_t width, std::int64_t rows) {
  return (model.gated_mlp ? 3 : 2) * rows * width;
}

std::int64_t dense_mlp(const Model& model) {
  const std::int64_t up_biases = (model.gated_mlp ? 2 : 1) * model.ffn_hidden;
  return feed_forward(model, model.ffn_hidden, model.hidden) +
         (model.mlp_bias ? up_biases + model.hidden : 0) + model.activation_weights;
}

std::int64_t one_expert(const Model& model, const Experts& experts) {
  const std::int64_t rows = experts.latent > 0 ? experts.latent : model.hidden;
  const std::int64_t biases = (model.gated_mlp ? 2 : 1) * experts.ffn_hidden + rows;
  return feed_forward(model, experts.ffn_hidden, rows) + (experts.linear_bias ? biases : 0);
}

std::int64_t sparse_mlp(const Model& model, const Experts& experts) {
  const std::int64_t router = model.hidden * experts.count +
                              (experts.router_bias && !model.hashes_experts ? experts.count : 0) +
                              (experts.linear_bias ? experts.count : 0);
  return router + 2 * model.hidden * experts.latent + (experts.latent_norm ? experts.latent : 0) +
         experts.count * one_expert(model, experts) +
         feed_forward(model, experts.shared_ffn_hidden, model.hidden) +
         (experts.shared_gate ? model.hidden : 0) +
         (experts.own_norms ? 3 * norm_size(model) + model.hidden + experts.count : 0);
}

// Norms before and after both branches.
std::int64_t outer_norms(const Model& model) {
  const std::int64_t places = model.norm_place == NormPlace::both     ? 4
                              : model.norm_place == NormPlace::shared ? 1
                                                                      : 2;
  return places * norm_size(model);
}

std::int64_t layer_norms(const Model& model) {
  std::int64_t norms = outer_norms(model) + qk_norms(model);
  if (model.latent) norms += model.latent->q_rank + model.latent->kv_rank;
  return norms;
}

// Parameters of a layer of that type, its norms included. The rest is as in layer number `like`.
std::int64_t one_layer(const Model& model, const ParameterCount& of, LayerType type, std::int64_t like) {
  const std::int64_t indexer = model.scores_keys(like) ? of.indexer : 0;
  switch (type) {
    case LayerType::transformer:
      return (model.recurs(like) ? of.recurrence + outer_norms(model) : of.attention + of.norms + indexer) +
             (model.is_sparse(like) ? of.experts : of.mlp) + (model.mamba_beside_attention ? of.mamba : 0) +
             of.depth + of.per_layer + (model.encodes(like) ? 0 : of.cross);
    case LayerType::mamba:
      return of.mamba + norm_size(model);
    case LayerType::attention:
      return of.attention + of.norms - norm_size(model);
    case LayerType::mlp:
      return of.mlp + norm_size(model);
    case LayerType::experts:
      return of.experts + norm_size(model);
  }
  return 0;
}

bool has_experts(LayerType type, bool sparse) {
  return type == LayerType::experts || (type == LayerType::transformer && sparse);
}

// Weights that mix the streams, before and after a branch (DeepSeek-V4's HyperConnection) and before the
// head.
std::int64_t stream_weights(const Model& model) {
  const std::int64_t scores = (2 + model.streams) * model.streams;
  return model.streams == 1 ? 0 : scores * model.streams * model.hidden + scores + 3;
}
std::int64_t last_stream_weights(const Model& model) {
  return model.streams == 1 ? 0 : model.streams * model.streams * model.hidden + model.streams + 1;
}

// A norm and a score of each sum (Kimi K3), before both branches of each layer and before the head.
std::int64_t depth_weights(const Model& model) {
  return model.depth_block > 0 ? 2 * model.hidden : 0;
}

// Gemma 3n:
// - gate, projection and norm of the layer's embedding;
// - scale, coefficients, router and norm of copies;
// - two matrices and a norm of the linear branch.
std::int64_t per_layer_weights(const Model& model) {
  const std::int64_t h = model.hidden, n = model.alternating;
  std::int64_t weights = model.per_layer_width > 0 ? 2 * h * model.per_layer_width + norm_size(model) : 0;
  if (n > 1) weights += h + n * n + n * n * n + h * n + norm_size(model);
  if (model.laurel_rank > 0) weights += 2 * h * model.laurel_rank + norm_size(model);
  return weights;
}

// The embedding tables of all layers, the projection of the token embedding to all of them, and their norm;
// projections to copies and back.
std::int64_t per_layer_ends(const Model& model) {
  const std::int64_t all = model.layers * model.per_layer_width;
  const std::int64_t embedded =
      all > 0 ? model.per_layer_vocab * all + model.hidden * all + model.per_layer_width : 0;
  return embedded + 2 * (model.alternating - 1) * model.hidden * model.hidden;
}

// The parts of a layer of the model's own shape.
ParameterCount parts_of(const Model& model) {
  ParameterCount count;
  count.attention = model.compressed ? compressed_attention(model, *model.compressed)
                    : model.latent   ? latent_attention(model, *model.latent)
                                     : dense_attention(model);
  count.mlp = dense_mlp(model);
  count.experts = model.experts ? sparse_mlp(model, *model.experts) : 0;
  count.norms = layer_norms(model);
  count.per_layer = per_layer_weights(model);
  count.cross = model.encoder_layers > 0 ? count.attention + norm_size(model) : 0;
  count.depth = 2 * (depth_weights(model) + stream_weights(model));
  count.recurrence = model.recurrence ? recurrent_mixer(model, *model.recurrence) : 0;
  count.mamba = model.state_space ? mamba_mixer(model, *model.state_space) : count.recurrence;
  count.indexer = model.indexer ? indexer_size(model, *model.indexer) : 0;
  return count;
}

void count_layers(const Model& model, ParameterCount& count) {
  std::vector<ParameterCount> parts = {count};
  for (std::size_t shape = 1; shape <= model.shapes.size(); ++shape)
    parts.push_back(parts_of(model.shaped(static_cast<std::int32_t>(shape))));
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const LayerType type = model.type_of(layer);
    const bool sparse = model.is_sparse(layer);
    count.total += one_layer(model, parts[static_cast<std::size_t>(model.shape_of(layer))], type, layer);
    if (sparse) ++count.sparse_layers;
    if (type == LayerType::mlp || (type == LayerType::transformer && !sparse)) ++count.dense_layers;
  }
}

// DeepSeek-V3, equation 21: two norms and a projection before the layers inside an MTP layer, and a norm
// after them.
std::int64_t one_module(const Model& model, const ParameterCount& count) {
  std::int64_t module = 3 * norm_size(model) + 2 * model.hidden * model.hidden;
  for (const LayerType type : model.types_of_module())
    module += one_layer(model, count, type, model.layers - 1);
  // An MTP layer scores keys for itself, whether or not the last layer does (zai-org/GLM-5.2: 22 indexers).
  if (model.indexer && !model.scores_keys(model.layers - 1)) module += count.indexer;
  return module;
}

}  // namespace

ParameterCount count_parameters(const Model& model) {
  ParameterCount count = parts_of(model);
  count.embedding =
      (model.vocab + model.token_types) * model.hidden + (model.embedding_norm ? norm_size(model) : 0);
  count.positions = model.positions == Positions::learned ? model.position_rows() * model.hidden : 0;
  count.positions += model.relative_positions * model.heads;
  if (model.encoder_layers > 0) {
    count.positions *= model.positions == Positions::learned ? 2 : 1;
    count.embedding += model.embedding_norm ? norm_size(model) : 0;
  }
  count.final_norm = model.norm_place == NormPlace::after_sum ? 0 : norm_size(model);
  if (model.encoder_layers > 0) count.final_norm *= 2;
  count.head = (model.tied_embeddings ? 0 : model.vocab * model.hidden) +
               (model.head_bias ? model.vocab : 0) +
               (model.head_transform ? model.hidden * model.hidden + model.hidden + norm_size(model) : 0);
  const std::int32_t last = model.shape_of(model.layers - 1);
  count.mtp = model.mtp_layers > 0 ? one_module(model, parts_of(model.shaped(last))) : 0;
  const std::int64_t modules =
      model.mtp_repeated ? std::min<std::int64_t>(1, model.mtp_layers) : model.mtp_layers;
  count.total = count.embedding + count.positions + count.final_norm + count.head + modules * count.mtp +
                depth_weights(model) + last_stream_weights(model) + per_layer_ends(model);
  count_layers(model, count);
  count.active = count.total;
  if (model.experts) {
    const std::int64_t unvisited = model.experts->count - model.experts->per_token;
    std::int64_t sparse = count.sparse_layers;
    for (const LayerType type : model.types_of_module())
      if (has_experts(type, model.is_sparse(model.layers - 1))) sparse += modules;
    count.active -= sparse * unvisited * one_expert(model, *model.experts);
  }
  return count;
}

namespace {

std::int64_t count_projector(const Projector& projector, std::int64_t row) {
  const std::int64_t merged = projector.averages ? row : projector.merged * row;
  const auto norm = [&](std::int64_t width) { return (projector.norm == Norm::layer ? 2 : 1) * width; };
  std::int64_t linear = 0, from = merged;
  for (const std::int64_t to : projector.widths) {
    linear += from * to + (projector.bias ? to : 0);
    from = to;
  }
  return (projector.has_norm ? norm(row) : 0) + linear + projector.earlier * (norm(merged) + linear);
}

}  // namespace

std::int64_t count_tower(const Tower& tower) {
  const Model& layers = tower.layers;
  const ParameterCount layer = parts_of(layers);
  const std::int64_t patches = (tower.patch_inputs + (tower.patch_bias ? 1 : 0)) * layers.hidden;
  const std::int64_t tables = (layers.max_positions + (tower.class_row ? 1 : 0)) * layers.hidden;
  const std::int64_t norms = (tower.norm_before + tower.norm_after) * norm_size(layers);
  return layers.layers * (layer.attention + layer.mlp + layer.norms) + patches + tables + norms +
         count_projector(tower.projector, layers.hidden);
}

}  // namespace rehearse
