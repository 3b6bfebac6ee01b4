// What does each family of Hugging Face configurations mean? One reader a family: it knows what the family's
// model class implies and what its absent keys default to.
#pragma once

#include <string>

#include "base/json_reader.h"
#include "model/model.h"

namespace rehearse {

// The keys that nearly all decoders share: hidden_size, num_hidden_layers, num_attention_heads,
// num_key_value_heads, head_dim, intermediate_size, vocab_size, max_position_embeddings, tie_word_embeddings.
// An absent num_key_value_heads means all heads in some classes, and a number of its own in others: those
// must name it.
enum class AbsentKvHeads { all_heads, error };
Model read_decoder(const JsonReader& config, AbsentKvHeads absent = AbsentKvHeads::all_heads);

Model read_llama(const JsonReader& config);        // Touvron et al. 2023
Model read_mistral(const JsonReader& config);      // Jiang et al. 2023
Model read_qwen2(const JsonReader& config);        // biases on queries, keys and values
Model read_qwen3(const JsonReader& config);        // norms on queries and keys
Model read_gpt2(const JsonReader& config);         // also the GPTs of Megatron-LM
Model read_gpt_neox(const JsonReader& config);     // Black et al. 2022
Model read_nemotron(const JsonReader& config);     // Parmar et al. 2024: squared ReLU, LayerNorm
Model read_mixtral(const JsonReader& config);      // Jiang et al. 2024
Model read_qwen3_moe(const JsonReader& config);    // Qwen3 with experts
Model read_deepseek_v2(const JsonReader& config);  // latent attention, shared experts
Model read_deepseek_v3(const JsonReader& config);  // and a bias on the router, multi-token prediction
Model read_gpt_oss(const JsonReader& config);      // windows in every other layer, sinks, biases everywhere
Model read_megatron_gpt(const JsonReader& config);  // what Megatron-LM's flags say and no other family does
Model read_nemotron_h(const JsonReader& config);   // Mamba-2, attention, MLPs and experts, a layer each

// The ranks and widths of DeepSeek's latent attention.
LatentAttention read_latent(const JsonReader& config);

// hybrid_override_pattern, the state space that it needs, and the pattern of multi-token prediction.
void read_hybrid(const JsonReader& config, Model& model);

// sliding_window, and which layers look through it: layer_types.
void read_layer_windows(const JsonReader& config, Model& model);

// Keys of any family that change the cost of training and that no formula reads, nor `model`'s own reader.
std::vector<std::string> unmodelled_keys(const JsonReader& config, const Model& model);

// Keys that nothing reads and whose values no model has, each as a sentence with the effect.
std::vector<std::string> doubtful_values(const JsonReader& config, const Model& model);

}  // namespace rehearse
