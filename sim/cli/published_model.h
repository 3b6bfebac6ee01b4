// Which network does a published run's row describe?
#pragma once

#include "base/json_reader.h"
#include "model/model.h"

namespace rehearse {

// `run`: its parallel.tp, what is missing, and its model: layers, hidden, heads, kv_heads, ffn_hidden, vocab,
// seq_len, gated_mlp, and where said head_dim, activation, pos, tied_embeddings, experts, experts_per_token,
// moe_ffn, shared_ffn, dense_layers, mla, mtp_layers, gpt_oss with its window. `practice`: dropout, biases,
// tied of the family, and vocab, of which each rank holds the part rounded down, where the run's is missing.
// Gated MLPs come with RMSNorm, rotary positions and no biases (Llama); others with LayerNorm, learned
// positions and biases (GPT-2), squared ReLU with Nemotron's LayerNorm, rotary positions and no biases.
Model published_model(const Json& run, const Json& practice);

}  // namespace rehearse
