// How many parameters has the token mixer of a layer, its inner norms included?
#pragma once

#include "model/model.h"

namespace rehearse {

// Mamba-2 (Dao and Gu 2024, figure 6):
// - one projection to gate, input, both maps and steps;
// - weights and biases of the convolution;
// - for each head a bias of its steps, a decay and a skip weight;
// - a norm and an output projection.
std::int64_t mamba_mixer(const Model& model, const StateSpace& space);

// Parameters as transformers has them: Qwen3NextGatedDeltaNet (modular_qwen3_next.py),
// MiniMaxLightningAttention (modular_minimax.py), JambaMambaMixer (modular_jamba.py).
std::int64_t recurrent_mixer(const Model& model, const Recurrence& of);

// indexer_size: DeepseekV32Indexer of transformers (modular_deepseek_v32.py). It has maps of the compressed
// queries and of the input, a LayerNorm of the keys, and a weight of each head.
std::int64_t compressed_attention(const Model& model, const CompressedAttention& of);
std::int64_t indexer_size(const Model& model, const Indexer& indexer);

}  // namespace rehearse
