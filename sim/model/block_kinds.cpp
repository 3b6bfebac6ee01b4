#include "model/block_kinds.h"

#include <algorithm>

namespace rehearse {

namespace {

const std::vector<BlockKind>& kinds() {
  static const std::vector<BlockKind> all = {
      {"attention",
       '*',
       true,
       {"num_attention_heads", "num_key_value_heads", "head_dim", "sliding_window", "qkv_bias",
        "attention_out_bias", "qk_norm_span", "attention_sinks", "attention_gate"},
       Json::object()},
      {"latent_attention",
       '*',
       true,
       {"num_attention_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
        "v_head_dim"},
       {{"latent", true}}},
      {"mamba2",
       'M',
       true,
       {"mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state", "mamba_d_conv",
        "mamba_chunk_size"},
       Json::object()},
      {"gated_delta_rule",
       'R',
       true,
       {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
        "linear_conv_kernel_dim"},
       {{"recurrence", "gated_delta_rule"}}},
      {"lightning_attention", 'R', true, {"block_size"}, {{"recurrence", "lightning"}}},
      {"mamba1",
       'R',
       true,
       {"mamba_expand", "mamba_d_state", "mamba_d_conv", "mamba_dt_rank", "inner_norms"},
       {{"recurrence", "selective_scan"}}},
      {"mlp", '-', false, {"intermediate_size", "mlp_bias"}, Json::object()},
      {"experts",
       'E',
       false,
       {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size",
        "shared_expert_gate", "router_bias", "moe_linear_bias", "swiglu_limit"},
       {{"experts", true}}}};
  return all;
}

}  // namespace

const BlockKind* block_kind(const std::string& name) {
  const auto found = std::ranges::find(kinds(), name, &BlockKind::name);
  return found == kinds().end() ? nullptr : &*found;
}

std::vector<std::string> block_kind_names() {
  std::vector<std::string> names;
  for (const BlockKind& kind : kinds()) names.push_back(kind.name);
  return names;
}

const std::vector<std::string>& block_list_keys() {
  static const std::vector<std::string> keys = {"model_type",
                                                "name",
                                                "hidden_size",
                                                "vocab_size",
                                                "tie_word_embeddings",
                                                "max_position_embeddings",
                                                "position_embedding_type",
                                                "position_offset",
                                                "normalization",
                                                "norm_place",
                                                "embedding_norm",
                                                "activation",
                                                "parallel_residual",
                                                "head_bias",
                                                "dropout",
                                                "blocks",
                                                "layers"};
  return keys;
}

}  // namespace rehearse
