#include "export/megatron_parts.h"

namespace rehearse {

std::vector<const char*> without_flag(const Model& model) {
  std::vector<const char*> parts;
  if (model.parallel_residual) parts.push_back("parallel_residual");
  if (model.positions == Positions::alibi) parts.push_back("alibi");
  if (model.norm == Norm::layer_weight || model.norm == Norm::layer_plain) parts.push_back("norm_bias");
  if (model.norm_place != NormPlace::before) parts.push_back("norm_place");
  if (model.qk_norm_span != QkNormSpan::head) parts.push_back("qk_norm_span");
  if (model.embedding_norm) parts.push_back("embedding_norm");
  if (model.bidirectional) parts.push_back("bidirectional");
  if (model.token_types > 0) parts.push_back("token_types");
  if (model.head_transform) parts.push_back("head_transform");
  if (model.caps_scores || model.caps_logits) parts.push_back("softcapping");
  if (!model.rotary.empty()) parts.push_back("rotary");
  if (model.qk_norm_plain) parts.push_back("qk_norm_plain");
  if (model.recurrence) parts.push_back("recurrence");
  if (model.indexer) parts.push_back("indexer");
  if (!model.shapes.empty()) parts.push_back("layer_shapes");
  if (model.v_head_dim > 0) parts.push_back("v_head_dim");
  if (model.values_are_keys || model.value_norm) parts.push_back("values_are_keys");
  if (model.experts && model.experts->own_norms) parts.push_back("experts_own_norms");
  if (model.mamba_beside_attention) parts.push_back("mamba_beside_attention");
  if (model.compressed) parts.push_back("compressed_attention");
  if (model.streams > 1) parts.push_back("streams");
  if (model.encoder_layers > 0) parts.push_back("encoder");
  if (model.activation_weights > 0) parts.push_back("activation_weights");
  if (model.per_layer_width > 0) parts.push_back("per_layer_embeddings");
  if (model.alternating > 1 || model.laurel_rank > 0) parts.push_back("altup");
  if (model.shares_keys) parts.push_back("shares_keys");
  if (model.depth_block > 0) parts.push_back("depth_block");
  if (model.state_space && !model.state_space->norm) parts.push_back("mamba_norm");
  if (model.experts && model.experts->latent_norm) parts.push_back("latent_norm");
  if (model.attention_gate) parts.push_back("attention_gate");
  if (model.window_in_chunks) parts.push_back("window_in_chunks");
  if (model.head_bias) parts.push_back("head_bias");
  if (model.position_offset > 0) parts.push_back("position_offset");
  return parts;
}

}  // namespace rehearse
