// What do the parts of a Hugging Face configuration mean? Families of known parts share one reader. Families
// with several kinds of layers have readers of their own, and so do Megatron-LM's flags.
#pragma once

#include <string>

#include "base/json_reader.h"
#include "model/family.h"
#include "model/model.h"

namespace rehearse {

// Layers, widths, heads and vocabulary.
void read_shape(const FamilyConfig& config, Model& model);

Model read_family(const FamilyConfig& config);
Model read_megatron_gpt(const FamilyConfig& config);  // parts named by Megatron-LM's flags
Model read_block_list(const FamilyConfig& config);  // our own format: named blocks, and layers built of them
// Layers of one part each: Mamba-2, attention, MLP or experts.
Model read_nemotron_h(const FamilyConfig& config);
Model read_nas(const FamilyConfig& config);  // blocks whose sizes were found by a search

// Layers with experts, number of experts and their width.
Experts read_experts(const FamilyConfig& config, std::int64_t layers);

// The attention window, and the layers that use it.
void read_windows(const FamilyConfig& config, Model& model);

// Sizes of layers with the window, or of those without, where the family's row gives them.
void read_own_shape(const FamilyConfig& config, Model& model);

// Last layers without keys and values of their own.
void read_shared_keys(const FamilyConfig& config, Model& model);

// Embeddings of each layer, copies of rows and linear branches (Gemma 3n).
void read_per_layer(const FamilyConfig& config, Model& model);

// Sizes that the file lists for each layer.
void read_listed_shapes(const FamilyConfig& config, Model& model);

// Sets the sizes of each layer. The sizes of the first layer become the model's.
void set_shapes(Model& model, const std::vector<LayerShape>& of_layers);

// A list with 1 or 0 for each layer.
std::string listed_marks(const FamilyConfig& config, const std::string& part, std::int64_t layers);

StateSpace state_space_of(const FamilyConfig& config, std::int64_t default_heads = 0);

// Layers with rotary positions.
void read_rotary(const FamilyConfig& config, Model& model);

// Splits layers of a state space or attention, each with an MLP or experts, into layers of one part each.
void read_blocks(const FamilyConfig& config, Model& model);

// The recurrence that replaces attention in a family, and the layers that have it.
void read_recurrence(const FamilyConfig& config, Model& model);

// The indexer, whose scores choose the keys that attention sees.
void read_indexer(const FamilyConfig& config, Model& model);

// `marks`: 1 for each layer with the window, 0 for the others.
void set_windows(Model& model, const std::string& marks);

// The ranks and widths of DeepSeek's latent attention.
LatentAttention read_latent(const FamilyConfig& config);

// DeepSeek-V4's attention: tokens per compressed key of each layer, and the layers that hash experts.
void read_compressed(const FamilyConfig& config, Model& model);

// Are rotary positions scaled by a factor (YaRN)?
bool is_yarn(const JsonReader& config);

// The number of layers: from a list of their kinds, else from `key`.
std::int64_t layers_of_list(const JsonReader& config, const std::string& key);

// hybrid_override_pattern, the state space that it needs, and the pattern of multi-token prediction.
void read_hybrid(const JsonReader& config, Model& model);

// The towers (vision, audio) of a multimodal model's file. `text_width`: width of its language model.
std::vector<Tower> read_towers(const Json& config, std::int64_t text_width);

// Keys of any family that change training cost and that neither a formula nor `model`'s own reader reads.
std::vector<std::string> unmodelled_keys(const JsonReader& config, const Model& model);

// Keys that nothing reads and whose values no known model has: one sentence each, with the effect.
std::vector<std::string> doubtful_values(const JsonReader& config, const Model& model);

}  // namespace rehearse
