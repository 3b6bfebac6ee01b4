// What do the parts of a Hugging Face configuration mean? Families of known parts share one reader; those
// whose layers are of several kinds, and Megatron-LM's flags, have their own.
#pragma once

#include <string>

#include "base/json_reader.h"
#include "model/family.h"
#include "model/model.h"

namespace rehearse {

// Layers, widths, heads and vocabulary.
void read_shape(const FamilyConfig& config, Model& model);

Model read_family(const FamilyConfig& config);
Model read_megatron_gpt(const FamilyConfig& config);  // as Megatron-LM's flags say
Model read_block_list(const FamilyConfig& config);    // our own format: named blocks, and layers of them
Model read_nemotron_h(const FamilyConfig& config);    // Mamba-2, attention, MLPs and experts, a layer each
Model read_nas(const FamilyConfig& config);           // blocks whose sizes were searched

// Which layers have experts, how many and how wide.
Experts read_experts(const FamilyConfig& config, std::int64_t layers);

// The window of attention, and which layers look through it.
void read_windows(const FamilyConfig& config, Model& model);

// The sizes of layers that look through the window, or of those that do not, where the row says so.
void read_own_shape(const FamilyConfig& config, Model& model);

// Layers at the end that have no keys and values of their own.
void read_shared_keys(const FamilyConfig& config, Model& model);

// Embeddings of each layer, copies of rows and linear branches (Gemma 3n).
void read_per_layer(const FamilyConfig& config, Model& model);

// Sizes that the file lists layer by layer.
void read_listed_shapes(const FamilyConfig& config, Model& model);

// Each layer's sizes: those of the first are the model's.
void set_shapes(Model& model, const std::vector<LayerShape>& of_layers);

// A list with 1 or 0 for each layer.
std::string listed_marks(const FamilyConfig& config, const std::string& part, std::int64_t layers);

StateSpace state_space_of(const FamilyConfig& config);

// Which layers have rotary positions.
void read_rotary(const FamilyConfig& config, Model& model);

// Layers of a state space or attention, each with an MLP or experts: as layers of one part each.
void read_blocks(const FamilyConfig& config, Model& model);

// The recurrence that a family has in attention's place, and in which layers.
void read_recurrence(const FamilyConfig& config, Model& model);

// The scores that choose the keys which attention sees.
void read_indexer(const FamilyConfig& config, Model& model);

// Which layers look through the window: of each layer 1 or 0.
void set_windows(Model& model, const std::string& marks);

// The ranks and widths of DeepSeek's latent attention.
LatentAttention read_latent(const FamilyConfig& config);

// DeepSeek-V4's attention: how many tokens the keys of each layer stand for, and which layers hash experts.
void read_compressed(const FamilyConfig& config, Model& model);

// Are rotary positions scaled by a factor (YaRN)?
bool is_yarn(const JsonReader& config);

// As many layers as a list of their kinds has, where the count itself, `key`, is absent.
std::int64_t layers_of_list(const JsonReader& config, const std::string& key);

// hybrid_override_pattern, the state space that it needs, and the pattern of multi-token prediction.
void read_hybrid(const JsonReader& config, Model& model);

// The towers (vision, audio) of a multimodal model's file, whose language model has this width.
std::vector<Tower> read_towers(const Json& config, std::int64_t text_width);

// Keys of any family that change the cost of training and that no formula reads, nor `model`'s own reader.
std::vector<std::string> unmodelled_keys(const JsonReader& config, const Model& model);

// Keys that nothing reads and whose values no model has, each as a sentence with the effect.
std::vector<std::string> doubtful_values(const JsonReader& config, const Model& model);

}  // namespace rehearse
